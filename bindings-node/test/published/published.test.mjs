// Servers that others have published, by themselves and under `mcpbolt exec`: every answer is compared.
//
// The stage `published-node` takes all of them; `MCPBOLT_PUBLISHED=NAME,NAME` takes these.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { inspect, isDeepStrictEqual } from 'node:util';
import { COMMAND } from '../programs.mjs';
import { begun, place } from './begun.mjs';
import { nameOf, SERVERS } from './servers.mjs';
import { conversation, masked, shape, STATELESS, Talk } from './talk.mjs';

const { MCPBOLT_PUBLISHED: wish = 'all' } = process.env;
const CHOSEN = SERVERS.filter(server => wish === 'all' || wish.split(',').includes(nameOf(server)));
assert.ok(CHOSEN.length > 0, `no server is named ${wish}`);
for (const server of CHOSEN) {
    for (const revision of ['2025-11-25', STATELESS])
        test(`${nameOf(server)} says the same, ${revision}`, async () => {
            const said = {};
            let told;
            for (const how of ['own', 'exec']) {
                const talk = begun(server, how, revision);
                try {
                    said[how] = masked(await conversation(talk, server));
                } finally {
                    talk.child.kill('SIGKILL');
                }
                told = talk.stderr.split('\n').filter(line => line.startsWith('mcpbolt: '));
            }
            assert.ok(told[0]?.startsWith(`mcpbolt: ${server.how ?? 'stdio: the engine serves'}`), told.join('\n'));
            const varies = name => server.varies?.includes(name.split(' ')[0]);
            const alike = name => isDeepStrictEqual(said.own[name], said.exec[name]) || (varies(name) && isDeepStrictEqual(shape(said.own[name]), shape(said.exec[name])));
            const unlike = Object.keys(said.own).filter(name => !alike(name));
            assert.deepEqual(Object.keys(said.exec), Object.keys(said.own));
            const shown = unlike.slice(0, 5).map(name => [name, { own: said.own[name], exec: said.exec[name] }]);
            assert.equal(unlike.length, 0, inspect({ unlike, shown }, { depth: 9, maxStringLength: 600 }));
        });

    test(`${nameOf(server)} is ended by a signal as by itself`, async () => {
        const ends = {};
        for (const how of ['own', 'exec']) {
            const talk = begun(server, how, '2025-11-25');
            await talk.open();
            // The program runs on once its server is connected, and may set a handler then; it answers this after that.
            await talk.request('tools/list');
            talk.child.kill('SIGTERM');
            ends[how] = await talk.exit;
        }
        assert.equal(ends.exec, ends.own);
    });
}

if (wish === 'all')
    test('npx installs what is not there, if it is asked for', async () => {
        const here = join(place, 'empty');
        mkdirSync(here);
        const { package: spec } = SERVERS.find(server => nameOf(server).endsWith('sequential-thinking'));
        const env = { MCPBOLT_REPORT: '1', npm_config_cache: join(place, 'npm'), npm_execpath: '' };
        const talk = new Talk([process.execPath, COMMAND, 'exec', '--yes', spec], here, env, '2025-11-25');
        assert.equal((await talk.open()).result.serverInfo.name, 'sequential-thinking-server');
        await talk.end();
        assert.match(talk.stderr, /^mcpbolt: stdio: the engine serves 'sequential-thinking-server'/m);
    });
