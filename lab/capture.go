package lab

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Capture is what passes interfaces of a node: in the format pcapng, by dumpcap.
type Capture struct {
	Node   string
	Port   uint16 // of a switch; 0: all of its ports
	Filter string // of pcap-filter(7); empty: all packets
}

const (
	// CaptureProgram is the program that captures.
	CaptureProgram = "dumpcap"

	snapLength = 65535 // of a packet that is captured
)

// StartCapture starts a command, prepared for CaptureProgram, that writes a capture to its
// standard output.
func (l *Lab) StartCapture(cmd *exec.Cmd, c Capture) error {
	space, ifaces, err := l.InterfacesOf(c.Node, c.Port)
	if err != nil {
		return err
	}
	if cmd.Err != nil {
		return fmt.Errorf("captures need %s on the machine: install the Debian package tshark (%w)", CaptureProgram, cmd.Err)
	}
	cmd.Args = append(cmd.Args, "-n", "-q", "-s", fmt.Sprint(snapLength), "-w", "-")
	if c.Filter != "" {
		cmd.Args = append(cmd.Args, "-f", c.Filter) // before all interfaces: of each
	}
	for _, i := range ifaces {
		cmd.Args = append(cmd.Args, "-i", i)
	}
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	cmd.Env = append(cmd.Env, "LC_ALL=C")
	return l.StartIn(space, c.Node, cmd)
}

// CaptureFault returns why there is no capture, by what its command has said; empty if it
// has said nothing about it.
func CaptureFault(c Capture, said string) string {
	if _, after, ok := strings.Cut(said, "isn't a valid capture filter"); ok && c.Filter != "" {
		reason, _, _ := strings.Cut(strings.TrimSpace(after), "\n") // the manual that follows is of another program
		return fmt.Sprintf("%q is not a filter %s; see pcap-filter(7)", c.Filter, strings.TrimSuffix(reason, "."))
	}
	var lines []string
	for line := range strings.Lines(said) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "weft: ")
		if line != "" && !strings.HasPrefix(line, "Capturing on") && !strings.HasPrefix(line, "Running as") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, " ")
}
