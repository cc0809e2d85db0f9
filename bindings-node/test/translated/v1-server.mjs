import { Client as TheirClient } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { McpServer as TheirServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { faces } from './face.mjs';

export * from '@modelcontextprotocol/sdk/server/mcp.js';
export const { McpServer, Client } = faces({ McpServer: TheirServer, Client: TheirClient, InMemoryTransport });
