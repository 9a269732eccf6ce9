package fakeengine

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
)

// load simulates the stages of a load, as far as the script allows.
func (p *process) load(s *Script) {
	if p.args.model == "" {
		logf('I', "srv  llama_server: starting router server, no model will be loaded in this process")
		return
	}
	logf('I', "cmn  common_param: common_params_print_info: verbosity = 3 (adjust with the `-lv N` CLI arg)")
	logf('I', "srv    load_model: loading model '%s'", p.args.model)
	p.logPlacement(s)
	stages := []string{"text_model"}
	if p.args.draft != "" {
		stages = append(stages, "spec_model")
	}
	if p.args.mmproj != "" {
		stages = append(stages, "mmproj_model")
	}
	steps := max(1, s.Load.Steps)
	pause := s.Load.Duration / time.Duration(steps*len(stages))
	for i, stage := range stages {
		p.sendLoading(stages, stage, 0)
		for step := 1; step <= steps; step++ {
			time.Sleep(pause)
			if i == len(stages)-1 && step == steps {
				p.endOfLoad(s)
			}
			p.sendLoading(stages, stage, float64(step)/float64(steps))
		}
	}
	n, context, unified := p.args.slots(s.trainContext())
	logf('I', "srv    load_model: initializing, n_slots = %d, n_ctx_slot = %d, kv_unified = '%t'", n, context, unified)
}

// endOfLoad is where the script's faults of the load happen.
func (p *process) endOfLoad(s *Script) {
	if s.Load.Gate != "" {
		p.Tell(Event{Kind: Gated, Gate: s.Load.Gate})
		for !p.IsOpen(s.Load.Gate) {
			time.Sleep(fakekit.PollEvery)
		}
	}
	if s.Load.Hang {
		select {}
	}
	if s.Load.Fail != nil {
		p.die(*s.Load.Fail, "load failure")
	}
}

// becomeReady announces readiness, and handles requests to end from then on.
func (p *process) becomeReady() {
	s := p.script()
	p.watchSignals()
	p.server.loaded.Store(true)
	if p.args.model != "" {
		logf('I', "srv  llama_server: model loaded")
	}
	for _, address := range p.server.addresses() {
		logf('I', "srv  llama_server: listening on %s", address)
	}
	if p.routed {
		payload, err := json.Marshal(p.server.modelInfo())
		if err != nil {
			p.Exit(fakekit.ExitBroken, err.Error())
		}
		sendState(fmt.Sprintf(`{"state":"ready","payload":%s}`, payload))
	}
	p.Tell(Event{Kind: Ready, Port: p.server.port})
	if p.routed {
		logf('I', "srv    operator(): child server monitoring thread started, waiting for EOF on stdin...")
		go p.watchInput()
	}
	fakekit.MakeNoise(s.Noise, AtReady)
}

// sendLoading reports the progress of a stage, from 0 to 1, if the child protocol is on.
func (p *process) sendLoading(stages []string, current string, value float64) {
	if !p.routed {
		return
	}
	number := strconv.FormatFloat(value, 'g', -1, 64)
	if !strings.Contains(number, ".") {
		number += ".0" // as the real one writes it
	}
	sendState(fmt.Sprintf(`{"state":"loading","payload":{"stages":["%s"],"current":"%s","value":%s}}`,
		strings.Join(stages, `","`), current, number))
}

func sendState(state string) {
	_, _ = os.Stdout.WriteString("cmd_child_to_router:state:" + state + "\n")
}
