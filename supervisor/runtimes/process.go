package runtimes

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// run runs a tool of the distribution and returns its standard output. If percent is not nil, the tool must be apt, configured
// to report its progress on file descriptor 3.
func (d *debian) run(ctx context.Context, dir string, percent func(float64), name string, arguments ...string) (string, error) {
	var output, complaints strings.Builder
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive")
	command.Stdout, command.Stderr = &output, &complaints
	command.WaitDelay = 5 * time.Second
	endWithUs(command)

	// If this process is killed, the kernel kills the tool. It does so when the thread ends that started the tool.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := runTelling(command, percent)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %s", name, complaint(complaints.String(), err))
	}
	return output.String(), nil
}

// runTelling runs a command, and calls percent with the progress that it writes to file descriptor 3.
func runTelling(command *exec.Cmd, percent func(float64)) error {
	if percent == nil {
		return command.Run()
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	command.ExtraFiles = []*os.File{write}
	if err := command.Start(); err != nil {
		write.Close()
		return err
	}
	write.Close()
	told := make(chan struct{})
	go func() {
		defer close(told)
		tellPercent(read, percent)
	}()
	err = command.Wait()
	// Processes that the tool has left may hold the other end open.
	_ = read.SetReadDeadline(time.Now())
	<-told
	return err
}

// tellPercent parses lines such as "dlstatus:3:93.3333:Retrieving file 3 of 3".
func tellPercent(from io.Reader, percent func(float64)) {
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		fields := strings.SplitN(lines.Text(), ":", 4)
		if len(fields) < 3 || fields[0] != "dlstatus" {
			continue
		}
		if value, err := strconv.ParseFloat(fields[2], 64); err == nil {
			percent(value)
		}
	}
}

// complaint returns the reason in a tool's output: its first error, or else its first warning, or else its last line.
func complaint(output string, err error) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for _, mark := range []string{"E: ", "Err:", "W: "} {
		for _, line := range lines {
			if strings.HasPrefix(line, mark) {
				return strings.TrimSpace(line)
			}
		}
	}
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return err.Error()
}
