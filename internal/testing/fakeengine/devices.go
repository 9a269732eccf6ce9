package fakeengine

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Device is a GPU of the fake engine.
type Device struct {
	Name, Title string
	Total, Free int // MiB
	// Reads and Writes are files that its driver has to open, as a sandbox may refuse; empty: none.
	Reads, Writes string
}

// listDevices is the flag of builds that can list their devices.
var listDevices = []Flag{
	flag("--list-devices", "print list of available devices and exit", ""),
	flag("-fitt, --fit-target MiB0,MiB1,MiB2,...", "target margin per device for --fit", "LLAMA_ARG_FIT_TARGET"),
}

// isThere reports whether the driver finds the device.
func (d *Device) isThere() bool {
	for path, mode := range map[string]int{d.Reads: os.O_RDONLY, d.Writes: os.O_RDWR} {
		if path == "" {
			continue
		}
		file, err := os.OpenFile(path, mode, 0)
		if err != nil {
			return false
		}
		_ = file.Close()
	}
	return true
}

// found returns the devices that the drivers find.
func (s *Script) found() []Device {
	return slices.DeleteFunc(slices.Clone(s.Devices), func(d Device) bool { return !d.isThere() })
}

// printDevices answers --list-devices.
func (s *Script) printDevices() {
	fmt.Println("Available devices:")
	found := s.found()
	for _, d := range found {
		fmt.Printf("  %s: %s (%d MiB, %d MiB free)\n", d.Name, d.Title, d.Total, d.Free)
	}
	if len(found) == 0 {
		fmt.Println("  (none)")
	}
}

// checkDevices returns the real parser's error about a device that isn't there.
func (s *Script) checkDevices(list string) error {
	for name := range strings.SplitSeq(list, ",") {
		if name != "" && name != "none" && !slices.ContainsFunc(s.found(), func(d Device) bool { return d.Name == name }) {
			return errors.New(`error while handling argument "--device": invalid device: ` + name)
		}
	}
	return nil
}

// logPlacement logs where the model is: wholly on the first of the devices that were chosen, or found.
func (p *process) logPlacement(s *Script) {
	on := ""
	if found := s.found(); len(found) > 0 {
		on = found[0].Name
	}
	if p.args.device != "" {
		on, _, _ = strings.Cut(p.args.device, ",")
	}
	if on == "" || on == "none" || s.Load.OnDevice == 0 {
		return
	}
	if s.Load.Reduced {
		logf('I', "common_params_fit_impl: cannot meet free memory target of 1024 MiB, need to reduce device memory by 36 MiB")
	}
	layers := 33
	if s.Load.Reduced {
		layers = 27
	}
	logf('I', "load_tensors: offloaded %d/33 layers to GPU", layers)
	logf('I', "load_tensors:   CPU_Mapped model buffer size =   %d.00 MiB", s.Load.OnDevice/10)
	logf('I', "load_tensors: %12s model buffer size =   %d.00 MiB", on, s.Load.OnDevice)
}
