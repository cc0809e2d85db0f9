import face from './dist/testing.js';

export const { connect, snapshot } = face;
