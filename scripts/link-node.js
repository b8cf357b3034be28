// Run by npm after each install. Each platform has its own package with the command `node`. npm 10 and older link only the first
// of them by name, which may be for another platform and therefore not installed.
import { existsSync, rmSync, symlinkSync } from 'node:fs';

const folder = `node-${process.platform}-${process.arch}`;
const link = 'node_modules/.bin/node';
if (existsSync(`node_modules/${folder}/bin/node`) && !existsSync(link)) {
  rmSync(link, { force: true });
  symlinkSync(`../${folder}/bin/node`, link);
}
