/**
 * Has the engine serve wherever a program would serve with an official SDK: `node --import mcpbolt/register server.js`.
 *
 * @packageDocumentation
 */
import { install, isOff } from './install';
import { requireNode } from './runtime';

if (!isOff()) {
    requireNode();
    install();
}
