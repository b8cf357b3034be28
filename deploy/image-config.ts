// Turns the image configuration printed by `buildah inspect` into shell variables for try-image.sh.
import { text } from 'node:stream/consumers';

const { Docker } = JSON.parse(await text(process.stdin));
const { Env, User, Entrypoint, Cmd, Healthcheck, WorkingDir } = Docker.config;
const [kind, ...health] = Healthcheck.Test;
if (kind !== 'CMD') throw new Error('The health check must not need a shell');
const quoted = (words: string[]) => words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
console.log(`user=${quoted([User])}\nfolder=${quoted([WorkingDir])}`);
console.log(
  `environment=(${quoted(Env)})\nstart=(${quoted([...Entrypoint, ...Cmd])})\nhealth=(${quoted(health)})`,
);
