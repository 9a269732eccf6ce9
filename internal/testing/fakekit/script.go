package fakekit

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	scriptFile  = "script.json"
	journalFile = "journal.jsonl"
	ownerFile   = "owner" // the test binary's process id
	gatesFolder = "gates"
	startFolder = "starts"
)

// writeScript replaces the script in one step, so that a child never reads half of one. Windows refuses to replace a file while a child
// has it open: hence the retries.
func writeScript(dir string, s any) error {
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return fmt.Errorf("encoding the script: %w", err)
	}
	draft := filepath.Join(dir, scriptFile+".new")
	if err := os.WriteFile(draft, text, 0o600); err != nil {
		return fmt.Errorf("writing the script: %w", err)
	}
	for range retries {
		if err = os.Rename(draft, filepath.Join(dir, scriptFile)); err == nil {
			return nil
		}
		time.Sleep(PollEvery)
	}
	return fmt.Errorf("replacing the script: %w", err)
}

// ReadScript decodes the program's script into s.
func (c *Child) ReadScript(s any) error {
	var text []byte
	var err error
	for range retries {
		if text, err = os.ReadFile(filepath.Join(c.Dir, scriptFile)); err == nil || os.IsNotExist(err) {
			break
		}
		time.Sleep(PollEvery)
	}
	if err != nil {
		return fmt.Errorf("reading the script: %w", err)
	}
	if err := json.Unmarshal(text, s); err != nil {
		return fmt.Errorf("decoding the script: %w", err)
	}
	return nil
}

func gatePath(dir, gate string) string { return filepath.Join(dir, gatesFolder, gate) }

// IsOpen reports whether a gate was released.
func (c *Child) IsOpen(gate string) bool {
	_, err := os.Stat(gatePath(c.Dir, gate))
	return err == nil
}
