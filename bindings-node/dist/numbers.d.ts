/**
 * What integers beyond 2^53 become, which a number of JavaScript's cannot hold: `number` is the nearest double, as
 * `JSON.parse` has it; `bigint` is exact; `text` is the digits in a string. Other numbers are numbers in any case.
 */
export type Integers = 'number' | 'bigint' | 'text';
