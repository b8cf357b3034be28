import { DEFAULT_MODEL, MODEL_IDS } from '@undertone/contract';
import { readSettings, SETTINGS, type Settings } from '@undertone/server/settings';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { UserError } from './user-error.ts';

export type SettingName = keyof typeof SETTINGS;

/** Where recordings are, if not in the data folder. */
export const S3_SETTINGS = [
  's3Bucket',
  's3Endpoint',
  's3PublicEndpoint',
  's3Region',
  's3Prefix',
  's3Addressing',
] as const satisfies SettingName[];

/** Secrets have no flags: every user of the machine can read command lines. */
export const WITHOUT_FLAG: readonly SettingName[] = ['apiKey', 'databaseUrl', 'secret'];

export const FLAG_NAMES = (Object.keys(SETTINGS) as SettingName[]).filter(
  (name) => !WITHOUT_FLAG.includes(name),
);

/** The flag of a server setting, with the server's own description, default and environment variable. */
export function settingFlag(name: SettingName): Option {
  const { description, default: fallback, env } = SETTINGS[name];
  const words = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
  const option = new Option(`--${words} <${words.split('-').at(-1)}>`, description).env(env);
  return fallback === '' ? option : option.default(fallback, fallback);
}

/** The settings as environment variables: a flag overrides its variable, and that overrides the default. */
export function asEnvironment(command: Command, names: readonly SettingName[]): Record<string, string> {
  const values = command.opts<Partial<Record<SettingName, string>>>();
  return Object.fromEntries(names.map((name) => [SETTINGS[name].env, values[name] ?? '']));
}

/** Empty if keys and requests are in the data folder. */
export function readDatabaseUrl(): string {
  const { env } = SETTINGS.databaseUrl;
  const file = `${env}_FILE`;
  return readSettings({ [env]: process.env[env], [file]: process.env[file] }).databaseUrl;
}

export function requireDatabaseUrl(): string {
  const url = readDatabaseUrl();
  if (url !== '') return url;
  throw new UserError(
    `Set ${SETTINGS.databaseUrl.env} to the database. The one in the data folder is updated on every start.`,
  );
}

/** Reads only the named settings, so that a wrong SERVICE_PORT does not stop `keys list`. */
export function readFlags<Name extends SettingName>(
  command: Command,
  names: readonly Name[],
): Pick<Settings, Name> {
  return readSettings(asEnvironment(command, names));
}

/** Parses the value of a flag that is a whole number. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (Number.isInteger(value) && value >= min && value <= max) return value;
    throw new InvalidArgumentError(`Use a whole number from ${min} to ${max}.`);
  };
}

export function modelFlag(): Option {
  return new Option('--model <model>', 'the emotions to choose from')
    .choices([...MODEL_IDS])
    .default(DEFAULT_MODEL);
}
