// The programs of the README and of the feature page run as they are printed there, and print what is said beside them.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { folder } from './wire.mjs';

const programsOf = page => {
    const text = readFileSync(new URL(page, folder), 'utf8');
    return [...text.matchAll(/^```js\n(.*?)^```$/gms)].map(([, program]) => program);
};
const [server, ...readme] = programsOf('README.md');
const features = programsOf('FEATURES.md');
const place = mkdtempSync(join(tmpdir(), 'mcpbolt-readme-'));
mkdirSync(join(place, 'node_modules'));
symlinkSync(folder.pathname, join(place, 'node_modules/mcpbolt'));
for (const name of ['zod', '@modelcontextprotocol', '@opentelemetry'])
    symlinkSync(new URL(`node_modules/${name}`, folder).pathname, join(place, `node_modules/${name}`));
writeFileSync(join(place, 'server.mjs'), server);

// A program with tests reports them as text, not to the runner of this test.
const { NODE_TEST_CONTEXT, ...env } = process.env;

assert.deepEqual([readme.length, features.length], [6, 40]);
for (const [page, programs] of Object.entries({ readme, features }))
    for (const [index, program] of programs.entries())
        test(`program ${index + 1} of the ${page}`, async () => {
            const file = join(place, `${page}-${index}.mjs`);
            writeFileSync(file, program);
            const { stdout } = await promisify(execFile)(process.execPath, [file], { cwd: place, env, timeout: 30_000 });
            const promised = [...program.matchAll(/^.*console\.log\(.*\); \/\/ (.*)$/gm)].map(([, said]) => said);
            if (promised.length === 0) assert.match(stdout, /text: '42'/);
            else if (program.includes('node:test')) assert.deepEqual(stdout.split('\n').filter(line => promised.includes(line)), promised);
            else assert.equal(stdout.trimEnd(), promised.flatMap(said => said.split(', ')).join('\n'));
        });
