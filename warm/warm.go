// Package warm keeps the states of prompts in files, which outlive the engines that computed them.
//
// A [Store] is a folder with the states of all models. A launch of an engine gets a [Shelf] of it, with the states that this
// launch can use, as its [Print] says, and a folder in which the engine writes and reads. A state goes this way:
//
//	file in Folder, written by the engine → Put → Find → Lay → file in Folder, read by the engine → Lift → Judge
//
// The store's folder:
//
//	key                  32 random bytes, the secret by which chains differ from others and descriptions are authenticated
//	written.json         the number of bytes written today
//	rates.json           what states have cost, by model
//	launch/<random>/     the folder of a shelf; all of them are removed when the store is opened
//	<print>/<id>.kv      a state, as the engine wrote it
//	<print>/<id>.json    its description: whose it is, the chain of its prompt, encrypted, its size and its checksum
//
// [Rates.Balance] tells whether to restore a state is faster than to process the prompt again, by what was measured. It survives
// a restart, as does the size of a token of a state.
//
// A state is valid only with its description, which is written last and authenticated with the key. Whatever else is found
// when the store is opened (a half of a state, a description of another home, temporary files) is removed. So a crash at any
// moment loses at most the state that was being put.
//
// The file that an engine gets has the size and the checksum that it had when an engine wrote it: engines crash on files that
// are cut off, and give wrong answers with files that were changed.
//
// A store has one goroutine, which prunes every hour. A store whose folder can't be used, and one that is switched off, keep
// nothing.
package warm

import (
	"time"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// Print identifies what makes a state valid: two launches with the same Print can use each other's states.
type Print struct {
	Model        string   // the key
	Files        []string // the model's files, its projector's and its draft's: their content counts, not their names
	Engine       string   // the name of the engine
	Build        string   // its version
	Architecture string   // of the model
	Launch       string   // what else counts, in the engine's own words
}

// State describes a file.
type State struct {
	Owner        string
	Conversation string       // of stored conversations: the id of the first response; else empty
	Prompt       prefix.Chain // of the request that made it
	PromptTokens int          // tokens at the end of the Prompt
	Tokens       int          // all tokens, with those of the answer
	Bytes        int64        // of the file, as the engine reports them
}

// Query is a prompt for which a state is searched.
type Query struct {
	Owner   string
	Private bool // only states of this owner
	Prompt  prefix.Chain
	Context int // tokens that the state may have at most; 0: any number
}

// Found is a state that has something in common with a prompt.
type Found struct {
	ID     string
	Common int // tokens in common, estimated
	Tokens int // of the whole state
	Bytes  int64
}

// Settings are what the operator decides. Whatever they say, a tenth of the disk stays free, but at most 1 GiB. Where room is
// needed, the states of an owner with more than half of it go first, then the least recently used ones.
type Settings struct {
	Off    bool          // keep nothing; the states that there are are deleted
	Size   int64         // bytes of all states together; 0: a tenth of the disk's free space when the store was opened, at most 50 GiB
	Daily  int64         // bytes written in a day (UTC); 0: ten times the size, at least 64 and at most 256 GiB
	MaxAge time.Duration // since the last use of a state; 0: unlimited
}
