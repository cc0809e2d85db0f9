// Runs tests of the official SDK, of tools, schemas and results, on servers that the engine serves: `node run.mjs [v1|v2]`.
//
// No package of npm has these tests. They come from a clone of the SDK's repository with its tags, which MCPBOLT_TYPESCRIPT_SDK
// names, and are not changed: only what they import is another. A file beside this one lists the tests that fail, and why;
// another test that fails is an error.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = dirname(fileURLToPath(import.meta.url));
const PACKAGE = join(HERE, '../..');
const CACHE = join(PACKAGE, '../.cache/node/translated');
/** The share of all collected tests that must pass. */
const LEAST = 0.95;

const SUITES = {
    v1: {
        tag: 'v1.29.0',
        installed: ['@modelcontextprotocol/sdk@1.29.0', 'zod@4.1.13', 'supertest@7', '@cfworker/json-schema@4'],
        files: ['test/server/mcp.test.ts', 'test/server/index.test.ts', 'test/server/elicitation.test.ts', 'test/server/title.test.ts', 'test/server/completable.test.ts', 'test/issues/test_1277_zod_v4_description.test.ts'],
        beside: ['src/__fixtures__/zodTestMatrix.ts'],
        // The sources, by their places in the package.
        imports: [
            ['^\\.\\./\\.\\./src/server/(?:mcp|index)\\.js$', './v1-server.mjs'],
            ['^\\.\\./\\.\\./src/client/index\\.js$', './v1-client.mjs'],
            ['^\\.\\./\\.\\./src/(?!__fixtures__)(.*)$', '@modelcontextprotocol/sdk/$1']
        ]
    },
    v2: {
        tag: '@modelcontextprotocol/server@2.0.0',
        installed: ['@modelcontextprotocol/server@2.0.0', '@modelcontextprotocol/client@2.0.0', 'zod@4.1.13', 'valibot@1', '@valibot/to-json-schema@1', 'arktype@2'],
        files: ['server/mcp.test.ts', 'title.test.ts', 'standardSchema.test.ts', 'issues/test400.optional-tool-params.test.ts', 'issues/test1277.zod.v4.description.test.ts'].map(
            name => `test/integration/test/${name}`
        ),
        beside: [],
        imports: [
            ['^@modelcontextprotocol/server$', './v2-server.mjs'],
            ['^@modelcontextprotocol/client$', './v2-client.mjs'],
            ['^@modelcontextprotocol/core-internal$', '@modelcontextprotocol/server']
        ]
    }
};

const CONFIG = `
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
const imports = JSON.parse(readFileSync(new URL('imports.json', import.meta.url), 'utf8')).map(([from, to]) => [new RegExp(from), to]);
const isTest = file => /\\.ts$/.test(file ?? '');
export default {
    plugins: [{
        name: 'faces',
        enforce: 'pre',
        resolveId(id, importer) {
            const found = isTest(importer) && imports.find(([from]) => from.test(id));
            if (!found) return undefined;
            const to = id.replace(...found);
            return to.startsWith('./') ? new URL(to, import.meta.url).pathname : { id: to, external: true };
        }
    }],
    test: { globals: true, include: ['test/**/*.test.ts'], testTimeout: 60_000, reporters: ['json'], outputFile: 'results.json' }
};
`;

function prepare(name, { tag, installed, files, beside, imports }) {
    const clone = process.env.MCPBOLT_TYPESCRIPT_SDK;
    if (!clone) throw new Error('MCPBOLT_TYPESCRIPT_SDK names no clone of https://github.com/modelcontextprotocol/typescript-sdk');
    const project = join(CACHE, name);
    mkdirSync(project, { recursive: true });
    const manifest = JSON.stringify({ name, private: true, type: 'module', installed });
    const path = join(project, 'package.json');
    if (!existsSync(join(project, 'node_modules/vitest')) || readFileSync(path, 'utf8') !== manifest) {
        writeFileSync(path, manifest);
        execFileSync('npm', ['install', '--no-save', '--no-audit', '--no-fund', ...installed, 'vitest@3.2.7'], { cwd: project, stdio: 'inherit' });
    }
    // A link would have the engine find another copy of the SDK.
    const own = join(project, 'node_modules/mcpbolt');
    rmSync(own, { recursive: true, force: true });
    for (const part of ['package.json', 'index.mjs', 'sdk.mjs', 'dist']) cpSync(join(PACKAGE, part), join(own, part), { recursive: true });
    for (const file of readdirSync(PACKAGE)) if (file.endsWith('.node')) symlinkSync(join(PACKAGE, file), join(own, file));
    for (const file of readdirSync(HERE)) if (/^(face|v\d.*)\.mjs$/.test(file)) cpSync(join(HERE, file), join(project, file));
    writeFileSync(join(project, 'imports.json'), JSON.stringify(imports));
    writeFileSync(join(project, 'vitest.config.mjs'), CONFIG);
    for (const folder of ['test', 'src']) rmSync(join(project, folder), { recursive: true, force: true });
    for (const file of [...files, ...beside]) {
        mkdirSync(dirname(join(project, file)), { recursive: true });
        writeFileSync(join(project, file), execFileSync('git', ['-C', clone, 'show', `${tag}:${file}`], { maxBuffer: 1 << 26 }));
    }
    return project;
}

/** The tests that fail, as patterns, and why. */
function listed(name) {
    const lines = readFileSync(join(HERE, `${name}.txt`), 'utf8').split('\n');
    return lines.filter(line => line && !line.startsWith('#')).map(line => line.split(': ', 1)[0]);
}

function passes(name, suite) {
    const project = prepare(name, suite);
    rmSync(join(project, 'results.json'), { force: true });
    const vitest = spawnSync(process.execPath, [join(project, 'node_modules/vitest/vitest.mjs'), 'run'], { cwd: project, encoding: 'utf8' });
    const { testResults } = JSON.parse(readFileSync(join(project, 'results.json'), 'utf8'));
    const unread = testResults.filter(({ assertionResults }) => assertionResults.length === 0).map(({ name, message }) => `${name}: ${message}`);
    const all = testResults.flatMap(({ assertionResults }) => assertionResults).filter(({ status }) => status === 'passed' || status === 'failed');
    const failed = all.filter(({ status }) => status === 'failed');
    const known = listed(name);
    const unknown = failed.filter(({ fullName }) => !known.some(part => fullName.includes(part)));
    const better = known.filter(part => !failed.some(({ fullName }) => fullName.includes(part)));
    const passed = all.length - failed.length;
    console.log(`${suite.tag}: ${passed} of all ${all.length} tests pass`);
    if (unread.length + unknown.length + better.length === 0 && testResults.length === suite.files.length && passed >= LEAST * all.length) return true;
    const shown = unknown.map(({ fullName, failureMessages }) => `${fullName}\n    ${failureMessages.join('\n    ').split('\n').slice(0, 6).join('\n    ')}`);
    console.error(vitest.stderr.slice(-2000), ...unread, 'fail, and are not listed:', ...shown, 'are listed, and do not fail:', ...better);
    return false;
}

const wanted = process.argv.slice(2);
const results = Object.entries(SUITES).filter(([name]) => wanted.length === 0 || wanted.includes(name)).map(([name, suite]) => passes(name, suite));
process.exitCode = results.length > 0 && results.every(Boolean) ? 0 : 1;
