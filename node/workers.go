package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/supervisor"
)

// checkWorkers returns an error if the addresses of a model's workers are wrong.
func (ms *ModelSettings) checkWorkers() error {
	for i, address := range ms.RPC {
		normal, err := supervisor.WorkerAddress(address)
		if err != nil {
			return err
		}
		if normal != address {
			return fmt.Errorf("%q must be written as %q", address, normal)
		}
		if slices.Contains(ms.RPC[:i], address) {
			return fmt.Errorf("the worker %s is named twice", address)
		}
	}
	hasFlag := func(arg string) bool { return arg == "--rpc" || strings.HasPrefix(arg, "--rpc=") }
	if len(ms.RPC) > 0 && slices.ContainsFunc(ms.Args, hasFlag) {
		return errors.New("the arguments have --rpc, too: leave it out there")
	}
	return nil
}
