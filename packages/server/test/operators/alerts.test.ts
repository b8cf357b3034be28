import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { PATHS } from '@undertone/contract';
import { testApp } from '@undertone/testing/app';
import { ROOT } from '@undertone/testing/paths';
import { parse, parseAllDocuments } from 'yaml';

const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');

interface Alert {
  alert: string;
  expr: string;
  annotations: { summary?: string; runbook_url?: string };
}

const rules = read('deploy/prometheus/undertone.rules.yml');
const alerts: Alert[] = parse(rules).groups.flatMap((group: { rules: Alert[] }) => group.rules);
const dashboard = JSON.parse(read('deploy/grafana/undertone.json')) as {
  panels: { targets: { expr: string }[] }[];
};

test('each alert links to its section of the runbooks, which says what it means, how to see it and what to do', () => {
  const runbooks = new Map(
    read('docs/RUNBOOKS.md')
      .split(/^## /m)
      .slice(1)
      .map((section) => [section.split('\n', 1)[0] ?? '', section]),
  );
  assert.deepEqual(
    [...runbooks.keys()],
    alerts.map(({ alert }) => alert),
  );
  for (const { alert, annotations } of alerts) {
    assert.equal(annotations.runbook_url, `docs/RUNBOOKS.md#${alert.toLowerCase()}`);
    assert.ok(annotations.summary, alert);
    for (const part of ['What it means', 'How to see it', 'What to do']) {
      assert.match(runbooks.get(alert) ?? '', new RegExp(`^\\*\\*${part}\\.\\*\\* \\S`, 'm'), alert);
    }
  }
});

test('each alert fires in a test of the rules, and stays quiet in an hour of ordinary load', () => {
  interface RuleTest {
    name: string;
    alert_rule_test: { alertname: string; exp_alerts?: unknown[] }[];
  }
  const { tests } = parse(read('deploy/prometheus/undertone.test.yml')) as { tests: RuleTest[] };
  const checks = tests.flatMap(({ alert_rule_test }) => alert_rule_test);
  const ordinary = tests.find(({ name }) => name === 'an hour of ordinary load')?.alert_rule_test ?? [];
  for (const { alert } of alerts) {
    assert.ok(
      checks.some(({ alertname, exp_alerts }) => alertname === alert && exp_alerts?.length),
      alert,
    );
    assert.ok(
      ordinary.some(({ alertname, exp_alerts }) => alertname === alert && !exp_alerts),
      alert,
    );
  }
});

test('every metric in the alerts and on the dashboard is one of the service', async () => {
  const { app } = await testApp();
  const { body } = await app.inject({ url: PATHS.metrics });
  const served = new Set([...body.matchAll(/^# HELP (undertone_\w+)/gm)].map(([, name]) => name));
  const queries = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
  assert.ok(queries.length > 20);
  for (const [name] of [rules, ...queries].join('\n').matchAll(/\bundertone_\w+/g)) {
    assert.ok(served.has(name) || served.has(name.replace(/_(bucket|sum|count)$/, '')), name);
  }
});

test('rules, scrape configuration and PodMonitor agree on the job', () => {
  for (const { alert, expr } of alerts) {
    for (const [selector] of expr.matchAll(/\b(undertone_\w+|up)\b(?!\()(\{[^}]*\})?/g)) {
      assert.match(selector, /\{job="undertone"/, `${alert}: ${selector}`);
    }
  }
  const { scrape_configs } = parse(read('deploy/prometheus/scrape.yml'));
  assert.deepEqual(
    scrape_configs.map(({ job_name }: { job_name: string }) => job_name),
    ['undertone'],
  );
  const monitor = parse(read('deploy/kubernetes/pod-monitor.yaml'));
  assert.equal(monitor.spec.jobLabel, 'app.kubernetes.io/name');
  for (const role of ['api', 'worker']) {
    const [deployment] = parseAllDocuments(read(`deploy/kubernetes/${role}.yaml`)).map((one) => one.toJS());
    const { metadata, spec } = deployment.spec.template;
    assert.equal(metadata.labels[monitor.spec.jobLabel], 'undertone');
    const ports = spec.containers[0].ports.map(({ name }: { name: string }) => name);
    assert.ok(ports.includes(monitor.spec.podMetricsEndpoints[0].port));
  }
});
