export * from '@modelcontextprotocol/client';
export { Client } from './v2-server.mjs';
