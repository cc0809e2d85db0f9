/**
 * Has the engine serve wherever a program would serve with an official SDK: `node --import mcpbolt/register server.js`.
 *
 * @packageDocumentation
 */
import { install } from './install';
import { requireNode } from './runtime';

requireNode();
install();
