package command

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"

	"github.com/weft-sdn/weft/internal/testwait"
	"github.com/weft-sdn/weft/lab/topology"
)

func TestLabShellLines(t *testing.T) {
	topo, err := topology.Parse("f", []byte("switches: [{name: s1}, {name: old, protocols: [OpenFlow10]}, {name: r1, kind: router}]\n"+
		"hosts: [{name: h1, switch: s1}, {name: h2, switch: s1}, {name: h6, switch: s1, ipv4: none}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	s := labShell{name: "net", program: "weft", topo: topo, out: &out}
	for line, want := range map[string]string{
		"":                                  "",
		"  # a remark":                      "",
		"h1 ping -c1 h2":                    "weft lab exec --name net h1 -- sh -c|ping -c1 10.0.0.2",
		"h1 ping -6 -c1 h2 | tail -n1":      "weft lab exec --name net h1 -- sh -c|ping -6 -c1 fd00::2 | tail -n1",
		"h1 ping6 h6":                       "weft lab exec --name net h1 -- sh -c|ping6 fd00::3",
		"h1 ping h6":                        "weft lab exec --name net h1 -- sh -c|ping fd00::3",
		"h1 ping r1 'h2  h2'":               "weft lab exec --name net h1 -- sh -c|ping 10.255.0.1 'h2  h2'",
		"s1 ovs-ofctl dump-flows":           `weft lab exec --name net s1 -- sh -c|ovs-ofctl -O OpenFlow13 dump-flows "$WEFT_LAB_BRIDGE"`,
		"s1 ovs-ofctl -t 5 dump-flows ip":   `weft lab exec --name net s1 -- sh -c|ovs-ofctl -O OpenFlow13 -t 5 dump-flows "$WEFT_LAB_BRIDGE" ip`,
		"s1 ovs-ofctl -OOpenFlow10 show s1": `weft lab exec --name net s1 -- sh -c|ovs-ofctl -OOpenFlow10 show "$WEFT_LAB_BRIDGE"`,
		"old ovs-ofctl dump-flows":          `weft lab exec --name net old -- sh -c|ovs-ofctl dump-flows "$WEFT_LAB_BRIDGE"`,
		"s1 ovs-vsctl list-ports s1":        `weft lab exec --name net s1 -- sh -c|ovs-vsctl list-ports "$WEFT_LAB_BRIDGE"`,
		"pingall":                           "weft lab ping --name net|--all",
		"net":                               "weft lab link --name|net",
		"link s1 old set --delay '5 ms'":    "weft lab link --name net s1 old set --delay|5 ms",
		"sh echo h1":                        "sh -c|echo h1",
		"quit":                              "error: leave",
		"h1":                                "error: h1: no command; write h1 COMMAND, such as h1 ip addr",
		"h3 ping h1":                        `error: "h3" is neither a node nor a command; try help`,
		"pong":                              "did you mean",
		"link 's1":                          "error: link: a ' is not closed",
	} {
		argv, err := s.command(line)
		got := strings.Join(argv, " ")
		if n := len(argv) - 1; n > 0 {
			got = strings.Join(argv[:n], " ") + "|" + argv[n]
		}
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want && (want == "" || !strings.Contains(got, want)) {
			t.Errorf("%s:\ngot  %s\nwant %s", line, got, want)
		}
	}
	for _, line := range []string{"nodes", "help"} {
		if argv, err := s.command(line); err != nil || argv != nil {
			t.Error(line, argv, err)
		}
	}
	if !strings.HasPrefix(out.String(), "s1 old r1 h1 h2 h6\nNODE COMMAND") {
		t.Error(out.String())
	}
	for line, want := range map[string]string{
		"h": "h|h1 h2 h6 help", "o": "old |", "h1 ping o": "h1 ping old |", "h1 ping h": "h1 ping h|h1 h2 h6",
		"p": "ping|", "ping": "ping|pingall ping", "pinga": "pingall |", "x": "x|", "z1 z": "z1 z|", "ex": "exit |",
	} {
		completed, all := s.complete(line)
		if got := completed + "|" + strings.Join(all, " "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// Interrupt clears the line that is typed.
func TestLabShellKeys(t *testing.T) {
	all, err := io.ReadAll(&labKeys{in: strings.NewReader("ab\x03c")})
	if err != nil || !slices.Equal(all, []byte("ab\x05\x15c")) {
		t.Errorf("%q, %v", all, err)
	}
}

// labScreen is what a terminal has shown.
type labScreen struct {
	mu   sync.Mutex // guards what follows
	text []byte     // what has been waited for is taken off
}

func (s *labScreen) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text = append(s.text, b...)
	return len(b), nil
}

// passed reports whether a text has come, and takes what is before its end.
func (s *labScreen) passed(want string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, after, ok := bytes.Cut(s.text, []byte(want))
	if ok {
		s.text = after
	}
	return ok
}

// testLabShell runs the shell on a lab in which s1 and s2 join h1 and h2. It does so from a
// pipe, and on a terminal, where an interrupt ends the command and not the shell.
func testLabShell(t *testing.T, weft, name string) {
	script := exec.Command(weft, "lab", "shell", name)
	script.Stdin = strings.NewReader("h1 ping -c1 -W10 h2\nh9 true\ns1 ovs-ofctl dump-flows\nh1 sh -c 'exit 3'\nexit\nnever\n")
	out, err := script.CombinedOutput()
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("the exit status of the shell: %v", err)
	}
	for _, want := range []string{"PING 10.0.0.2", "1 received", `weft: "h9" is neither a node nor a command`, "actions=NORMAL", "weft: the last command failed: exit status 3"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the shell does not print %q:\n%s", want, out)
		}
	}

	typed := exec.Command(weft, "lab", "shell", name)
	f, err := pty.Start(typed)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	screen := &labScreen{}
	read := make(chan struct{})
	go func() {
		defer close(read)
		_, _ = io.Copy(screen, f) // until the shell ends
	}()
	see := func(want string) {
		t.Helper()
		testwait.Until(t, "the terminal shows "+want, func() bool { return screen.passed(want) })
	}
	see(name + "> ")
	io.WriteString(f, "h1 ech\tnothing\x03") // clears the line
	io.WriteString(f, "h\t1 ping -i 0.2 h2\r")
	see("h1  h2  help")
	see("PING 10.0.0.2")
	see("icmp_seq=2")
	io.WriteString(f, "\x03")
	see("packets transmitted")
	see(name + "> ")
	io.WriteString(f, "h2 echo st'i'll; exit 4\r")
	see("still")
	see(name + "> ")
	io.WriteString(f, "\x04")
	if err := typed.Wait(); err != nil {
		t.Error(err)
	}
	<-read
}
