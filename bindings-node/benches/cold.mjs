// Cold start: from the start of a process to its answer to the first tools/list, beside a server without any library,
// and what loading the package and its native module takes: `node benches/cold.mjs [--quick] [--json FILE]`
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { median, note, quick } from './figures.mjs';
import { Pipe } from './pipe.mjs';

const rounds = quick ? 3 : 15;
const folder = fileURLToPath(new URL('..', import.meta.url));
const SERVER = `
    import { Server } from 'mcpbolt';
    await new Server('cold', '1').tool('echo', { inputSchema: { type: 'object', properties: { text: {} } } }, ({ text }) => text).run();
`;
const REQUIRED = `
    const { Server } = require('mcpbolt');
    new Server('cold', '1').tool('echo', { inputSchema: { type: 'object', properties: { text: {} } } }, ({ text }) => text).run();
`;
const CONTENDERS = {
    'bare node': ['benches/floors/stdio.mjs'],
    'mcpbolt, import': ['--input-type=module', '-e', SERVER],
    'mcpbolt, require': ['-e', REQUIRED]
};

async function once(args) {
    const began = performance.now();
    const pipe = new Pipe([process.execPath, ...args], folder);
    await pipe.open();
    const list = JSON.parse(await pipe.request(1, 'tools/list', {}));
    const took = performance.now() - began;
    const cpu = pipe.cpu();
    assert.equal(list.result.tools[0].name, 'echo');
    await pipe.end();
    return { took, cpu };
}

const all = Object.fromEntries(Object.keys(CONTENDERS).map(name => [name, []]));
for (let round = 0; round < rounds; round++) for (const [name, args] of Object.entries(CONTENDERS)) all[name].push(await once(args));
const [base, baseCpu] = ['took', 'cpu'].map(what => median(all['bare node'].map(one => one[what])));
console.log(`node ${process.version}; spawn to first tools/list, median of ${rounds}`);
for (const [name, ones] of Object.entries(all)) {
    const [took, cpu] = ['took', 'cpu'].map(what => median(ones.map(one => one[what])));
    note({ bench: 'node-cold', name, ms: took, cpuMs: cpu, ratio: took / base });
    console.log(`${name.padEnd(20)}${took.toFixed(1).padStart(8)} ms (${(took / base).toFixed(2)}x)${cpu.toFixed(1).padStart(8)} ms CPU (${(cpu / baseCpu).toFixed(2)}x)`);
}

const timed = source => {
    const text = `const began = performance.now(); ${source}; console.log(performance.now() - began)`;
    const run = () => Number(execFileSync(process.execPath, ['-e', text], { cwd: folder, encoding: 'utf8' }));
    return median(Array.from({ length: rounds }, run));
};
const module = `./mcpbolt.${process.platform}-${process.arch}.node`;
const [addon, whole] = [`require('${module}')`, "require('mcpbolt')"].map(timed);
note({ bench: 'node-load', addonMs: addon, packageMs: whole });
console.log(`loading the native module ${addon.toFixed(2)} ms, the package ${whole.toFixed(2)} ms`);
