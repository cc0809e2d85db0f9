// Packs the packages of a release: `node scripts/package.mjs [FOLDER [mcpbolt.PLATFORM.node …]]`.
//
// One package for each native module, and the face, which depends on whichever of them fits the platform it is
// installed on. Without arguments it packs the module that was built here. Prints the tarballs, the face first.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const package_ = dirname(dirname(fileURLToPath(import.meta.url)));
const [out = join(dirname(package_), '.cache/packages/node'), ...given] = process.argv.slice(2);
const manifest = JSON.parse(readFileSync(join(package_, 'package.json'), 'utf8'));
const { version, license, repository, engines } = manifest;
const shared = ['README.md', 'LICENSE-APACHE', 'LICENSE-MIT'];

/** This machine's C library is part of a platform's name on Linux. */
function abi() {
    if (process.platform !== 'linux') return process.platform === 'win32' ? '-msvc' : '';
    return process.report.getReport().header.glibcVersionRuntime ? '-gnu' : '-musl';
}

const here = `mcpbolt.${process.platform}-${process.arch}`;
const modules = (given.length > 0 ? given : [`${here}.node`]).map(file => {
    const path = resolve(package_, file);
    const name = basename(path, '.node');
    return { path, platform: (name === here ? name + abi() : name).replace('mcpbolt.', '') };
});

function write(name, json, files) {
    const folder = join(out, name);
    mkdirSync(folder, { recursive: true });
    for (const [from, to] of files) cpSync(from, join(folder, to), { recursive: true });
    writeFileSync(join(folder, 'package.json'), `${JSON.stringify(json, null, 2)}\n`);
    const packed = execFileSync('npm', ['pack', '--silent', '--pack-destination', resolve(out)], { cwd: folder, encoding: 'utf8' });
    return join(resolve(out), packed.trim().split('\n').at(-1));
}

const own = name => [join(package_, name), name];
const platformPackages = modules.map(({ path, platform }) => {
    const [os, cpu, libc] = platform.split('-');
    const file = `mcpbolt.${platform}.node`;
    const json = {
        name: `@mcpbolt/${platform}`,
        version,
        description: `The native module of mcpbolt for ${platform}`,
        ...{ license, repository, engines, type: 'commonjs', main: file, files: [file, 'LICENSE-*'] },
        ...{ os: [os], cpu: [cpu] },
        ...(os === 'linux' && { libc: [libc === 'gnu' ? 'glibc' : libc] })
    };
    return { name: json.name, tarball: write(platform, json, [[path, file], ...shared.map(own)]) };
});

const { devDependencies, scripts, ...face } = manifest;
const files = face.files.filter(file => !file.endsWith('.node'));
const optionalDependencies = Object.fromEntries(platformPackages.map(({ name }) => [name, version]));
const main = write('mcpbolt', { ...face, files, optionalDependencies }, [...files.filter(file => !file.includes('*')), ...shared].map(own));
for (const tarball of [main, ...platformPackages.map(({ tarball }) => tarball)]) console.log(tarball);
