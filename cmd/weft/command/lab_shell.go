package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/internal/document"
	"github.com/weft-sdn/weft/lab/topology"
)

const labShellHelp = `NODE COMMAND      run a command in a host or at a switch, by a shell: h1 ping -c3 h2
                  A node's name becomes its address. At a switch, ovs-ofctl takes
                  that switch: s1 ovs-ofctl dump-flows
nodes             list the nodes
net               show the links
pingall           ping every host from every other
link A B down     cut a link; up, silent, set and others: weft lab link --help
sh COMMAND        run a command on this machine
help              show this text
exit              leave; the lab stays up
and capture, graph, iperf, logs, ping, show, traffic, usage: as weft lab has them
`

func labShellCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "shell [NAME]",
		Short: "Type commands for the nodes of a lab, as in Mininet",
		Long: `Read commands, a line each, and run them in the nodes of a lab:

` + labShellHelp + `
On a terminal Tab completes names, the arrow keys recall lines, and interrupt ends the
running command, not the shell. Commands also come from a pipe, as in

  echo 'h1 ping -c1 h2' | weft lab shell ring-10

The exit status is then 1 if the last one failed.`,
		Example: `  weft lab shell ring-10
  weft lab shell ring-10 < commands.txt`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if name != "" && name != args[0] {
					return cli.Usagef(cmd, "--name %s: the lab %s is named already", name, args[0])
				}
				name = args[0]
			}
			l, far, err := labAnywhere(name)
			if err != nil {
				return err
			}
			exe, err := os.Executable()
			if err != nil {
				return err
			}
			s := labShell{program: exe, out: cmd.OutOrStdout(), errs: cmd.ErrOrStderr()}
			if far != nil {
				s.name, s.topo = far.Name, far.Topology
			} else {
				s.name, s.topo = l.Name(), l.Topology()
			}
			if in := int(os.Stdin.Fd()); cmd.InOrStdin() == os.Stdin && term.IsTerminal(in) && term.IsTerminal(int(os.Stdout.Fd())) {
				return s.terminal(in)
			}
			return s.lines(cmd.InOrStdin())
		},
	}
	labNameFlag(cmd, &name)
	return cmd
}

// labShell runs lines in the nodes of a lab.
type labShell struct {
	name, program string
	topo          *topology.Topology
	out, errs     io.Writer
	stdin         *os.File // of commands; nil: none
}

// errLabLeave says that the shell is left.
var errLabLeave = errors.New("leave")

// lines runs the lines of a script or pipe. The error is that of the last command.
func (s *labShell) lines(in io.Reader) error {
	scanner := bufio.NewScanner(in)
	var last error
	for scanner.Scan() {
		err := s.run(scanner.Text())
		if errors.Is(err, errLabLeave) {
			break
		}
		s.report(err)
		last = err
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read commands: %w", err)
	}
	switch exit := (*exec.ExitError)(nil); {
	case errors.As(last, &exit):
		return fmt.Errorf("the last command failed: %w", last)
	case last != nil: // which is printed already
		return errors.New("the last command was not run")
	}
	return nil
}

// report prints why a line was not run; a command that failed has said so itself.
func (s *labShell) report(err error) {
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(s.errs, "weft:", err)
	}
}

// terminal runs the lines that are typed on a terminal, until its end.
func (s *labShell) terminal(in int) error {
	s.stdin = os.Stdin
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt) // which is for the command that runs: it is in the same foreground
	defer signal.Stop(interrupts)
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{&labKeys{in: os.Stdin}, os.Stdout}, s.name+"> ")
	t.AutoCompleteCallback = func(line string, pos int, key rune) (string, int, bool) {
		if key != '\t' {
			return "", 0, false
		}
		completed, choices := s.complete(line[:pos])
		if len(choices) > 0 {
			fmt.Fprintln(t, strings.Join(choices, "  "))
		}
		return completed + line[pos:], len(completed), true
	}
	fmt.Fprintf(s.out, "lab %s: %d switches, %d hosts. Try h1 ping h2, or help. The lab stays up when you leave.\n", s.name, len(s.topo.Switches), len(s.topo.Hosts))
	for {
		line, err := s.read(in, t)
		if errors.Is(err, io.EOF) {
			fmt.Fprintln(s.out)
			return nil
		}
		if err != nil {
			return err
		}
		if err = s.run(line); errors.Is(err, errLabLeave) {
			return nil
		}
		s.report(err)
	}
}

// read returns a line that is typed; the terminal is raw meanwhile.
func (s *labShell) read(in int, t *term.Terminal) (string, error) {
	if width, height, err := term.GetSize(in); err == nil && width > 0 && height > 0 {
		if err := t.SetSize(width, height); err != nil {
			return "", err
		}
	}
	was, err := term.MakeRaw(in)
	if err != nil {
		return "", fmt.Errorf("terminal: %w", err)
	}
	line, err := t.ReadLine()
	return line, errors.Join(err, term.Restore(in, was))
}

// labKeys are the keys of a terminal, on which interrupt clears the line.
type labKeys struct{ in io.Reader }

func (k *labKeys) Read(b []byte) (int, error) {
	const interrupt, toEnd, clearLine = 3, 5, 21
	if len(b) < 2 {
		return k.in.Read(b)
	}
	n, err := k.in.Read(b[:len(b)/2])
	keys := slices.Clone(b[:n])
	n = 0
	for _, key := range keys {
		if key == interrupt {
			b[n], b[n+1] = toEnd, clearLine
			n += 2
			continue
		}
		b[n] = key
		n++
	}
	return n, err
}

// run runs a line.
func (s *labShell) run(line string) error {
	argv, err := s.command(line)
	if err != nil || len(argv) == 0 {
		return err
	}
	c := exec.Command(argv[0], argv[1:]...)
	c.Stdout, c.Stderr = s.out, s.errs
	if s.stdin != nil {
		c.Stdin = s.stdin
	}
	return c.Run()
}

// labShellCommands are commands of weft lab that a line may begin with.
var labShellCommands = []string{"capture", "graph", "iperf", "link", "logs", "ping", "show", "traffic", "usage"}

// labShellWords are the others.
var labShellWords = []string{"exit", "help", "net", "nodes", "pingall", "quit", "sh"}

// command returns the command line of a line, or prints what it asks for and returns
// none. The error is errLabLeave if the line leaves the shell.
func (s *labShell) command(line string) ([]string, error) {
	line = strings.TrimSpace(line)
	first, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	weft := func(args ...string) []string {
		return append([]string{s.program, "lab", args[0], "--name", s.name}, args[1:]...)
	}
	switch {
	case first == "" || strings.HasPrefix(first, "#"):
		return nil, nil
	case slices.Contains(s.nodes(), first) && rest == "":
		return nil, fmt.Errorf("%s: no command; write %s COMMAND, such as %s ip addr", first, first, first)
	case slices.Contains(s.nodes(), first):
		return weft("exec", first, "--", "sh", "-c", s.inNode(first, rest)), nil
	case slices.Contains(labShellCommands, first):
		words, err := topology.SplitWords(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", first, err)
		}
		return weft(words...), nil
	}
	switch first {
	case "exit", "quit":
		return nil, errLabLeave
	case "help", "?":
		fmt.Fprint(s.out, labShellHelp)
		return nil, nil
	case "nodes":
		fmt.Fprintln(s.out, strings.Join(s.nodes(), " "))
		return nil, nil
	case "net":
		return weft("link"), nil
	case "pingall":
		return weft("ping", "--all"), nil
	case "sh":
		return []string{"sh", "-c", rest}, nil
	}
	words := slices.Concat(labShellWords, labShellCommands)
	return nil, fmt.Errorf("%q is neither a node nor a command; try help%s", first, document.Meant(first, append(words, s.nodes()...)))
}

func (s *labShell) nodes() []string {
	var all []string
	for i := range s.topo.Switches {
		all = append(all, s.topo.Switches[i].Name)
	}
	for i := range s.topo.Hosts {
		all = append(all, s.topo.Hosts[i].Name)
	}
	return all
}

// inNode returns a command as a shell in a node takes it: words that are names of nodes
// become their addresses, of IPv6 if the command says so, and ovs-ofctl at a switch gets
// the bridge.
func (s *labShell) inNode(node, command string) string {
	words := strings.Split(command, " ")
	six := words[0] == "ping6" || slices.Contains(words, "-6")
	sw, atSwitch := s.topo.SwitchByName(node)
	const bridge = `"$WEFT_LAB_BRIDGE"`
	for i, w := range words[1:] {
		if atSwitch && sw.Controlled() && w == node {
			words[i+1] = bridge
		} else if a := s.address(w, six); a != "" {
			words[i+1] = a
		}
	}
	if words[0] != "ovs-ofctl" || !atSwitch {
		return strings.Join(words, " ")
	}
	version, verb := false, 0                      // where the command of ovs-ofctl stands
	for i := 1; i < len(words) && verb == 0; i++ { // of its options these have a value
		switch w := words[i]; {
		case w == "-O" || w == "--protocols" || w == "-t" || w == "-T" || w == "-F":
			version = version || w == "-O" || w == "--protocols"
			i++
		case strings.HasPrefix(w, "-O") || strings.HasPrefix(w, "--protocols="):
			version = true
		case w != "" && !strings.HasPrefix(w, "-"):
			verb = i
		}
	}
	if verb > 0 && !slices.Contains(words, bridge) {
		words = slices.Insert(words, verb+1, bridge)
	}
	if !version && slices.Contains(sw.Protocols, "OpenFlow13") {
		words = slices.Insert(words, 1, "-O", "OpenFlow13")
	}
	return strings.Join(words, " ")
}

// address returns the address of a node; empty if there is none of that name or it has
// none.
func (s *labShell) address(name string, six bool) string {
	if h, ok := s.topo.HostByName(name); ok {
		switch {
		case h.HasIPv6() && (six || !h.HasIPv4()):
			return h.IPv6.Addr().String()
		case h.HasIPv4() && !six:
			return h.IPv4.Addr().String()
		}
	}
	if sw, ok := s.topo.SwitchByName(name); ok && sw.Routes() {
		switch {
		case six && sw.Loopback6.IsValid():
			return sw.Loopback6.String()
		case !six && sw.Loopback.IsValid():
			return sw.Loopback.String()
		}
	}
	return ""
}

// complete returns a line up to the cursor with its last word completed as far as it is
// clear, and what it may be if that is not clear.
func (s *labShell) complete(line string) (string, []string) {
	begin := strings.LastIndexByte(line, ' ') + 1
	from := s.nodes()
	if strings.TrimSpace(line[:begin]) == "" {
		from = slices.Concat(from, labShellWords, labShellCommands)
	}
	var all []string
	for _, name := range from {
		if strings.HasPrefix(name, line[begin:]) {
			all = append(all, name)
		}
	}
	switch len(all) {
	case 0:
		return line, nil
	case 1:
		return line[:begin] + all[0] + " ", nil
	}
	common := all[0]
	for _, name := range all[1:] {
		for !strings.HasPrefix(name, common) {
			common = common[:len(common)-1]
		}
	}
	if len(common) > len(line[begin:]) {
		return line[:begin] + common, nil
	}
	const most = 60
	if len(all) > most {
		all = append(all[:most:most], fmt.Sprintf("… (%d)", len(all)))
	}
	return line, all
}
