package doctor

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/dustin/go-humanize"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// checkWorkers asks the workers on other machines that models are configured to use. One that computes for a model of the running server
// isn't asked: it answers nobody else.
func checkWorkers(ctx context.Context, s *Subject) (found []Finding) {
	addresses := s.workers()
	asker, ok := node.Engines()[0].New(s.setupOf(node.Engines()[0].Name)).(supervisor.WorkerAsker)
	if len(addresses) == 0 || !ok {
		return nil
	}
	users := map[string]string{}
	if s.Server != nil {
		if loaded, err := s.Server.Overview(ctx); err == nil {
			for _, in := range loaded.Instances {
				for _, w := range in.Workers {
					users[w.Name] = in.ID
				}
			}
		}
	}
	answers := make([][]Finding, len(addresses))
	done := make(chan int, len(addresses))
	for i, address := range addresses {
		go func() {
			answers[i] = askWorker(ctx, asker, address, users[address])
			done <- i
		}()
	}
	for range addresses {
		<-done
	}
	return slices.Concat(answers...)
}

func askWorker(ctx context.Context, asker supervisor.WorkerAsker, address, user string) []Finding {
	if user != "" {
		return ok("The worker %s computes for %s.", address, user)
	}
	memory, err := asker.AskWorker(ctx, address)
	if err != nil {
		return one(Problem, sentenceOf(err), "The models that use it can't be loaded before. docs/rpc.md describes workers.")
	}
	return ok("The worker %s has %s of memory, of which %s are free.", address,
		humanize.Bytes(uint64(max(0, memory.Total))), humanize.Bytes(uint64(max(0, memory.Free))))
}

// sentenceOf is an error as a sentence.
func sentenceOf(err error) string {
	text := err.Error()
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + strings.TrimRight(text[size:], ". ") + "."
}

// workers are the addresses of all workers in the configuration.
func (s *Subject) workers() (all []string) {
	if s.Config == nil {
		return nil
	}
	for _, m := range s.Config.Models {
		for address := range strings.FieldsSeq(setIn(m.Settings, "rpc")) {
			if normal, err := supervisor.WorkerAddress(address); err == nil && !slices.Contains(all, normal) {
				all = append(all, normal)
			}
		}
	}
	return all
}
