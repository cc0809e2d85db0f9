export * from './dist/sdk/index.js';
