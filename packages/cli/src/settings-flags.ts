import { DEFAULT_MODEL, MODEL_IDS } from '@undertone/contract';
import { readSettings, SETTINGS, type Settings } from '@undertone/server/settings';
import { type Command, Option } from 'commander';
import { UserError } from './user-error.ts';

export type SettingName = keyof typeof SETTINGS;

/** Secrets on a command line can be read by everybody on the machine, so these have no flags. */
export const WITHOUT_FLAG: readonly SettingName[] = ['apiKey', 'databaseUrl', 'secret'];

export const FLAG_NAMES = (Object.keys(SETTINGS) as SettingName[]).filter(
  (name) => !WITHOUT_FLAG.includes(name),
);

/** The flag of a server setting: same meaning, default and variable as on the server, from the same table. */
export function settingFlag(name: SettingName): Option {
  const { description, default: fallback, env } = SETTINGS[name];
  const words = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const option = new Option(`--${words} <${words.split('-').at(-1)}>`, description).env(env);
  return fallback === '' ? option : option.default(fallback, fallback);
}

/** As the server would read it: a flag overrides its environment variable, and that the default. */
export function asEnvironment(command: Command, names: readonly SettingName[]): Record<string, string> {
  const values = command.opts<Partial<Record<SettingName, string>>>();
  return Object.fromEntries(names.map((name) => [SETTINGS[name].env, values[name] ?? '']));
}

/** Where keys and requests are kept, when it is not the data folder. */
export function readDatabaseUrl(): string {
  const { env } = SETTINGS.databaseUrl;
  return readSettings({ [env]: process.env[env] }).databaseUrl;
}

export function requireDatabaseUrl(): string {
  const url = readDatabaseUrl();
  if (url !== '') return url;
  throw new UserError(
    `Name the database in ${SETTINGS.databaseUrl.env}. The one in the data folder is brought up to date by each start.`,
  );
}

/** Only the named settings are read: a wrong SERVICE_PORT is no reason not to list the keys. */
export function readFlags<Name extends SettingName>(
  command: Command,
  names: readonly Name[],
): Pick<Settings, Name> {
  return readSettings(asEnvironment(command, names));
}

export function modelFlag(): Option {
  return new Option('--model <model>', 'which emotions to tell apart')
    .choices([...MODEL_IDS])
    .default(DEFAULT_MODEL);
}
