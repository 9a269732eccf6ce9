// Package store is the place of what must outlive the process: conversations, tokens, download jobs. It is empty so far.
package store
