// Prints the queries of the Grafana dashboard as Prometheus rules, so that promtool can check them. Every Undertone metric in them
// and in the alerts must be listed in docs/OPERATIONS.md, which a test compares with the service itself.
import { readFileSync } from 'node:fs';
import { stringify } from 'yaml';

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8');
const dashboard = JSON.parse(read('grafana/undertone.json')) as { panels: { targets: { expr: string }[] }[] };
const queries = dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr));
const known = [...read('../docs/OPERATIONS.md').matchAll(/^\| `(undertone_\w+)`/gm)].map(([, name]) => name);
const alerts = read('prometheus/undertone.rules.yml');
for (const [name] of [...queries, alerts].join('\n').matchAll(/\bundertone_\w+/g)) {
  const base = name.replace(/_(bucket|sum|count)$/, '');
  if (!known.includes(base)) throw new Error(`The service has no metric ${name}`);
}
const rules = queries.map((query, i) => ({
  record: `dashboard:query${i}`,
  expr: query.replaceAll('$__rate_interval', '5m').replaceAll('$job', 'undertone'),
}));
process.stdout.write(stringify({ groups: [{ name: 'dashboard', rules }] }));
