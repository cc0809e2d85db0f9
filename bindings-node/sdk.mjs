import face from './dist/sdk/index.js';

export const { accelerate, Accelerated } = face;
