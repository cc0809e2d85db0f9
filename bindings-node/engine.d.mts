export * from './dist/engine/index.js';
