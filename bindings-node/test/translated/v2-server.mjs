import { Client as TheirClient } from '@modelcontextprotocol/client';
import { InMemoryTransport, McpServer as TheirServer } from '@modelcontextprotocol/server';
import { faces } from './face.mjs';

export * from '@modelcontextprotocol/server';
export const { McpServer, Client } = faces({ McpServer: TheirServer, Client: TheirClient, InMemoryTransport });
