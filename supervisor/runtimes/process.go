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

// run runs one of the distribution's tools and returns its standard output. With percent, the tool is apt, set to tell
// its progress on file descriptor 3.
func (d *debian) run(ctx context.Context, dir string, percent func(float64), name string, arguments ...string) (string, error) {
	var output, complaints strings.Builder
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive")
	command.Stdout, command.Stderr = &output, &complaints
	command.WaitDelay = 5 * time.Second
	endWithUs(command)

	// Should this process be killed, the tool is too; the kernel ties that to the thread which started it.
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

// runTelling runs the command, and calls percent meanwhile with what it tells on file descriptor 3.
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
	// What the tool leaves running may still have its end open.
	_ = read.SetReadDeadline(time.Now())
	<-told
	return err
}

// tellPercent reads lines like "dlstatus:3:93.3333:Retrieving file 3 of 3".
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

// complaint is the reason that a tool gives: its first error, else its first warning, else its last line.
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
