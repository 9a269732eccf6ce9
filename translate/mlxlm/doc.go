// Package mlxlm implements the wire format of mlx_lm.server, the server for MLX models on Apple machines, as measured on version
// 0.32.
//
// The server checks its requests badly: a value of the wrong type closes the connection, and some values end its generation for
// all clients. So every request is written anew, from values that are checked here.
package mlxlm
