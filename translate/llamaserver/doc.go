// Package llamaserver is the wire of llama.cpp's llama-server, as measured on version 0.7.0 (b11669).
package llamaserver
