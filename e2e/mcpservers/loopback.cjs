'use strict';
// Loaded before a server (node --require loopback.cjs): it then listens on a free port of the loopback interface alone, where by
// itself it would listen on every interface. It prints the port, and ends with its standard input, that is, with the test.

const net = require('node:net');

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (_port, ...rest) {
  this.once('listening', () => console.log(`port ${this.address().port}`));
  return listen.call(this, 0, '127.0.0.1', ...rest.filter((argument) => typeof argument === 'function'));
};

process.stdin.on('end', () => process.exit(0)).resume();
