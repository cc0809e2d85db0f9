export * from '@modelcontextprotocol/sdk/client/index.js';
export { Client } from './v1-server.mjs';
