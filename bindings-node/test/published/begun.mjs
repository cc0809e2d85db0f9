// Installs and starts published servers. Each is installed from npm into a folder of its own, once.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { nameOf } from './servers.mjs';
import { Talk } from './talk.mjs';

const folder = new URL('../..', import.meta.url);
const COMMAND = fileURLToPath(new URL('bin/mcpbolt.mjs', folder));
const CACHE = fileURLToPath(new URL('../.cache/node/published/', folder));
/** A folder for one run of this process. */
export const place = realpathSync(mkdtempSync(join(tmpdir(), 'mcpbolt-published-')));
process.on('exit', () => rmSync(place, { recursive: true, force: true }));

/** The file of its program. */
function installed(server) {
    const name = nameOf(server);
    const at = join(CACHE, name.replace('/', '+'));
    const manifest = JSON.stringify({ name: 'published', private: true, dependencies: { [name]: server.package.slice(name.length + 1) } });
    const stamp = join(at, 'installed.json');
    if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== manifest) {
        rmSync(at, { recursive: true, force: true });
        mkdirSync(at, { recursive: true });
        writeFileSync(join(at, 'package.json'), manifest);
        // Browsers and the like, which such scripts load, are not needed.
        const { status, stderr } = spawnSync('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts'], { cwd: at, encoding: 'utf8' });
        assert.equal(status, 0, stderr);
        writeFileSync(stamp, manifest);
    }
    const package_ = join(at, 'node_modules', name);
    const { bin } = JSON.parse(readFileSync(join(package_, 'package.json'), 'utf8'));
    const own = name.slice(name.indexOf('/') + 1);
    const programs = typeof bin === 'string' ? { [own]: bin } : bin;
    return join(package_, programs[server.program ?? (own in programs ? own : Object.keys(programs)[0])]);
}

/** Starts it, by itself (`own`) or under `mcpbolt exec`, in a folder that is as it was before each other run. */
export function begun(server, how, revision) {
    const file = installed(server);
    // Runs of both kinds find the same paths, one after the other.
    const here = join(place, nameOf(server).replace('/', '+'));
    rmSync(here, { recursive: true, force: true });
    mkdirSync(here);
    server.prepare?.(here);
    const command = how === 'own' ? [process.execPath, file] : [process.execPath, COMMAND, 'exec', file];
    return new Talk([...command, ...(server.args ?? [])], here, { MCPBOLT_REPORT: '1', HOME: here, ...server.env?.(here) }, revision);
}
