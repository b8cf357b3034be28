// Run by npm after each install. Each platform has its own package with the command `node`. npm 10 and older link only the first
// of them by name, which may be for another platform and therefore not installed.
import { existsSync, rmSync, symlinkSync } from 'node:fs';

if (process.platform !== 'linux') {
  const [major, minor] = process.versions.node.split('.').map(Number);
  const enough = major > 22 || (major === 22 && minor >= 18);
  console.log(
    `Undertone brings its own Node only on Linux. Here it runs with this machine's ${process.version}` +
      (enough ? '.' : ', which is too old: install Node 22.18 or newer, then run this again.'),
  );
  if (!enough) process.exit(1);
}
const folder = `node-${process.platform}-${process.arch}`;
const link = 'node_modules/.bin/node';
if (existsSync(`node_modules/${folder}/bin/node`) && !existsSync(link)) {
  rmSync(link, { force: true });
  symlinkSync(`../${folder}/bin/node`, link);
}
