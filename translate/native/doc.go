// Package native implements the dialect of the native chat, POST /api/v1/chat.
package native
