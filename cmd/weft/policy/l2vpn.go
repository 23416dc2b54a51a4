package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// setCircuit sets a circuit, alone.
func setCircuit(c *cli.Controller, m proto.Message) (proto.Message, error) {
	r, err := c.SetCircuits(c.Ctx, &api.SetCircuitsRequest{Circuits: []*api.Circuit{m.(*api.Circuit)}})
	if err == nil && len(r.Outcomes) == 0 {
		err = errors.New("the controller has answered with no outcome")
	}
	if err != nil {
		return nil, err
	}
	return r.Outcomes[0].Circuit, nil
}

// viewCircuit sets a circuit and shows it.
func viewCircuit(c *cli.Controller, m *api.Circuit) (cli.View, error) {
	now, err := setCircuit(c, m)
	return cli.View{Value: now, Text: func(t *cli.Table) { writeAnswer(t, now.ProtoReflect()) }}, err
}

// readTime reads when a circuit begins or ends; it ends after its beginning, if that is to come.
func readTime(flag string, to protoreflect.Message, f protoreflect.FieldDescriptor, text string) error {
	return setTime(flag, to, f, text, time.Now())
}

func setTime(flag string, to protoreflect.Message, f protoreflect.FieldDescriptor, text string, now time.Time) error {
	m := to.Interface().(*api.Circuit)
	if at, err := time.Parse(time.RFC3339, m.From); err == nil && flag == "until" && at.After(now) {
		now = at
	}
	at, err := instant(text, now)
	if err != nil {
		return fmt.Errorf("--%s %w", flag, err)
	}
	to.Set(f, protoreflect.ValueOfString(at))
	return nil
}

// instant returns a time as RFC 3339 has it, which is given so, or by a + and how long
// it is after another. An empty text stays empty.
func instant(text string, after time.Time) (string, error) {
	if ago, is := strings.CutPrefix(text, "+"); is {
		d, err := time.ParseDuration(ago)
		if err != nil || d < 0 {
			return "", fmt.Errorf("%q: want a + and a duration, such as +2h30m", text)
		}
		return after.Add(d).UTC().Format(time.RFC3339), nil
	}
	if text == "" {
		return "", nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "", fmt.Errorf("%q: want a time, such as 2026-12-01T08:00:00Z, or +2h", text)
	}
	return at.UTC().Format(time.RFC3339), nil
}

// setEnds sets the ends that arguments name, and those that flags do.
func setEnds(cmd *cobra.Command, args []string, m *api.Circuit) {
	if len(args) > 1 && cmd.Flags().Changed("end") {
		m.Ends = slices.Concat(args[1:], m.Ends)
	} else if len(args) > 1 {
		m.Ends = args[1:]
	}
}

func checkPreview(cmd *cobra.Command, args []string, request proto.Message) error {
	m := request.(*api.PreviewCircuitRequest).Circuit
	setEnds(cmd, args, m)
	return nil
}

func l2vpnAddCommand(r *cli.Remote) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Add a circuit, or replace the one of that name",
		Example: `  weft l2vpn add red 1:3 3:3
  weft l2vpn add blue 1:4.100 3:4.200 --rate 10M --protect
  weft l2vpn add night 1:6 3:6 --rate 400M --from 2026-12-01T20:00:00Z --until +10h
  weft l2vpn add trunk 1:7/10-20,30 3:7.500@0x88a8
  weft l2vpn add office 1:5 2:5 3:5.7 --type vpls --max-macs 100`,
	}
	f := newForm(cmd, (&api.Circuit{}).ProtoReflect().Descriptor(), "NAME END=- END...=-")
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		m := &api.Circuit{}
		if err := f.fill(m.ProtoReflect(), args, true); err != nil {
			return cli.View{}, err
		}
		setEnds(cmd, args, m)
		return viewCircuit(c, m)
	})
}

func l2vpnSetCommand(r *cli.Remote) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "set",
		Short: "Change a circuit",
		Long:  `Change of a circuit what flags say, and nothing else. Ends, if any are given, are all of its ends.`,
		Example: `  weft l2vpn set red --rate 20M
  weft l2vpn set red 1:3 4:3`,
	}
	f := newForm(cmd, (&api.Circuit{}).ProtoReflect().Descriptor(), "NAME [END...]=-")
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		m, err := c.GetCircuit(c.Ctx, &api.GetCircuitRequest{Name: args[0]})
		if err == nil {
			err = f.fill(m.ProtoReflect(), args, false)
		}
		if err != nil {
			return cli.View{}, err
		}
		setEnds(cmd, args, m)
		return viewCircuit(c, m)
	})
}

func l2vpnApplyCommand(r *cli.Remote) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "apply FILE",
		Short: "Have exactly the circuits of a file",
		Long: `Have exactly the circuits of a file, all or none: those that it names are added, or
changed to what it says, and all others are deleted. The file is YAML or JSON, as
weft l2vpn list -o yaml prints it; - is standard input.`,
		Example: "  weft l2vpn apply FILE.yaml --dry-run\n  weft l2vpn apply FILE.yaml",
		Args:    cobra.ExactArgs(1),
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would change")
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		list, err := readObjects(args[0], cmd, kindsOf(api.File_l2vpn_proto.Services().ByName("L2vpn")))
		if err != nil {
			return cli.View{}, err
		}
		request := &api.SetCircuitsRequest{Exactly: true, DryRun: dry}
		for _, m := range list[0].want {
			request.Circuits = append(request.Circuits, m.(*api.Circuit))
		}
		a, err := c.SetCircuits(c.Ctx, request)
		return cli.View{Value: a, Text: func(t *cli.Table) {
			for _, o := range a.Outcomes {
				if sign := map[string]string{"added": "+", "changed": "~", "deleted": "-", "refused": "!"}[o.Outcome]; sign != "" {
					fmt.Fprintln(t, cli.Plain(strings.TrimSuffix(fmt.Sprintf("%s circuit %s: %s", sign, o.Name, o.Error), ": ")))
				}
			}
			fmt.Fprintf(t, "%d added, %d changed, %d deleted, %d unchanged; %d entries\n", len(a.Added), len(a.Changed), len(a.Deleted), len(a.Unchanged), a.EntriesChanged)
		}}, err
	})
}

func l2vpnLoopCommand(r *cli.Remote) *cobra.Command {
	var last time.Duration
	var undo bool
	cmd := &cobra.Command{
		Use:   "loop NAME [END]",
		Short: "Loop back an end of a circuit for a test",
		Long: `Have an end of a circuit send back what the circuit brings there, with source and
destination address exchanged. Broadcast and multicast are dropped, and the customer at
that end is cut off. It ends by itself after --for.`,
		Example: "  weft l2vpn loop red 5:2 --for 10m\n  weft l2vpn loop red --undo",
		Args:    cobra.RangeArgs(1, 2),
	}
	cmd.Flags().DurationVar(&last, "for", 10*time.Minute, "how long")
	cmd.Flags().BoolVar(&undo, "undo", false, "end it now")
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		switch {
		case undo != (len(args) == 1):
			return cli.View{}, cli.Usagef(cmd, "want either an end of %s or --undo", args[0])
		case last < time.Second || last > 24*time.Hour:
			return cli.View{}, cli.Usagef(cmd, "--for %v: want 1s to 24h", last)
		}
		m, err := c.GetCircuit(c.Ctx, &api.GetCircuitRequest{Name: args[0]})
		if err != nil {
			return cli.View{}, err
		}
		if m.Loops, m.LoopsUntil = nil, ""; !undo {
			m.Loops, m.LoopsUntil = args[1:], time.Now().Add(last).UTC().Format(time.RFC3339)
		}
		return viewCircuit(c, m)
	})
}
