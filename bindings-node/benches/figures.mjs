// The command line and the report that the benches share: `node BENCH [--quick] [--json FILE]`.
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({ options: { quick: { type: 'boolean' }, json: { type: 'string' } }, allowPositionals: true });

/** A few short rounds: for a look, not for figures. */
export const quick = values.quick === true;
export const words = positionals;

const records = [];

/** One figure, for programs. */
export const note = record => void records.push(record);

process.on('exit', code => {
    if (values.json && code === 0) writeFileSync(values.json, records.map(record => `${JSON.stringify(record)}\n`).join(''));
});

export const median = values => [...values].sort((a, b) => a - b)[values.length >> 1];
