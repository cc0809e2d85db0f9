import { Client as TheirClient } from '@modelcontextprotocol/sdk/client/index.js';
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js';
import { Server as TheirLowServer } from '@modelcontextprotocol/sdk/server/index.js';
import { McpServer as TheirServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { faces } from './face.mjs';

export * from '@modelcontextprotocol/sdk/server/mcp.js';
export const { McpServer, Server, Client } = faces({ McpServer: TheirServer, Server: TheirLowServer, Client: TheirClient, InMemoryTransport });
