package policy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
)

// readPlace reads SWITCH/PORT into a list of places, or into the fields dpid and port. In
// the form "holds" it may be SWITCH for all of its ports.
func readPlace(form, flag string, to protoreflect.Message, f protoreflect.FieldDescriptor, texts []string) error {
	read := cli.PlaceText
	if form == "holds" {
		read = parseSwitchOrPlace
	}
	if f.IsList() {
		return readEach(flag, to, f, texts, read)
	}
	at, err := read(texts[0])
	if err != nil && flag != "" {
		err = fmt.Errorf("--%s %w", flag, err)
	}
	to.Set(f, protoreflect.ValueOfString(at.GetDpid()))
	to.Set(to.Descriptor().Fields().ByName("port"), protoreflect.ValueOfUint32(at.GetPort()))
	return err
}

// parseSwitchOrPlace reads SWITCH/PORT, or SWITCH for all of its ports.
func parseSwitchOrPlace(s string) (*api.Location, error) {
	if strings.Contains(s, "/") {
		return cli.PlaceText(s)
	}
	sw, err := cli.SwitchText(s)
	if err != nil {
		return nil, fmt.Errorf("%q: want SWITCH/PORT or SWITCH: %w", s, err)
	}
	return &api.Location{Dpid: sw}, nil
}

// checkUnbind wants a host or a port.
func checkUnbind(cmd *cobra.Command, args []string, request proto.Message) error {
	if (len(args) == 1) == (request.(*api.UnbindHostRequest).Dpid != "") {
		return cli.Usagef(cmd, "want a MAC, or --at SWITCH/PORT for the sticky bindings of a port")
	}
	return nil
}

func writeUnbound(t *cli.Table, _, answer proto.Message) {
	if n := answer.(*api.UnbindHostResponse).Deleted; n > 0 {
		fmt.Fprintln(t, cli.Several(n, "binding", "bindings"), "deleted")
	}
}

// failUnbound fails if there was no binding to delete.
func failUnbound(_ *cli.Controller, _, answer proto.Message) (failed, err error) {
	if answer.(*api.UnbindHostResponse).Deleted == 0 {
		failed = errors.New("there was no such binding; weft host bindings shows those that are")
	}
	return failed, nil
}

func writeRevoked(t *cli.Table, request, answer proto.Message) {
	if m := request.(*api.RevokeHostRequest); answer.(*api.RevokeHostResponse).Revoked {
		fmt.Fprintf(t, "host %s held by %s again\n", m.Mac, m.Stage)
	}
}

// failRevoked fails if the host was not approved.
func failRevoked(_ *cli.Controller, request, answer proto.Message) (failed, err error) {
	if m := request.(*api.RevokeHostRequest); !answer.(*api.RevokeHostResponse).Revoked {
		failed = fmt.Errorf("stage %s had not approved host %s", m.Stage, m.Mac)
	}
	return failed, nil
}

func writeApproved(t *cli.Table, request, _ proto.Message) {
	m := request.(*api.ApproveHostRequest)
	fmt.Fprintf(t, "host %s approved by %s\n", m.Mac, m.Stage)
}

// viewUndone shows the answer to what takes something back: what is written if it was there,
// and none is the error if it was not.
func viewUndone(answer cli.Deletion, err error, what string, none error) (cli.View, error) {
	if err != nil {
		return cli.View{}, err
	}
	if !answer.GetDeleted() {
		return cli.View{Value: answer, Text: func(*cli.Table) {}, Failed: none}, nil
	}
	return cli.View{Value: answer, Text: func(t *cli.Table) { fmt.Fprintln(t, what) }}, nil
}

func hostPortCommand(r *cli.Remote) *cobra.Command {
	var remove bool
	cmd := &cobra.Command{
		Use:   "port",
		Short: "Limit the hosts of a port, or bind those that it learns",
		Long: `Limit the hosts of a port, or bind those that it learns. With --sticky, hosts that
are known there, and those that are learnt later, are bound to the port with
their addresses, until weft host unbind --at.`,
		Example: `  weft host port 1/4 --max 2 --sticky
  weft host port 1/4 --clear`,
	}
	f := newForm(cmd, (&api.PortSecurity{}).ProtoReflect().Descriptor(), "SWITCH/PORT=dpid")
	cmd.Flags().BoolVar(&remove, "clear", false, "delete the settings of the port; its sticky bindings stay")
	cmd.MarkFlagsMutuallyExclusive("clear", "max")
	cmd.MarkFlagsMutuallyExclusive("clear", "sticky")
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		m := &api.PortSecurity{}
		if err := f.fill(m.ProtoReflect(), args, true); err != nil {
			return cli.View{}, err
		}
		if remove {
			answer, err := c.DeletePortSecurity(c.Ctx, &api.DeletePortSecurityRequest{Dpid: m.Dpid, Port: m.Port})
			return viewUndone(answer, err, fmt.Sprint("settings of port ", args[0], " deleted"),
				fmt.Errorf("nothing was set for port %s; weft host bindings shows the ports that have settings", args[0]))
		}
		p, err := c.SetPortSecurity(c.Ctx, &api.SetPortSecurityRequest{Security: m})
		return cli.View{Value: p, Text: func(t *cli.Table) { writeAnswer(t, p.ProtoReflect()) }}, err
	})
}

func hostHoldCommand(r *cli.Remote) *cobra.Command {
	var off bool
	cmd := &cobra.Command{
		Use:   "hold",
		Short: "Hold hosts until a stage has approved them",
		Long: `Hold hosts until a stage has approved them: no flow entry carries packets from or
to them, and each of their packets is delivered only if the stage says so. While
the stage is away, they stay held. Apps hold hosts by themselves; this is to have
them held before the app is there. Hosts that were approved stay so, unless --off
ends the hold.`,
		Example: `  weft host hold portal
  weft host hold portal --at 1/3 --at 4
  weft host hold portal --off`,
	}
	f := newForm(cmd, (&api.HostHold{}).ProtoReflect().Descriptor(), "STAGE")
	cmd.Flags().BoolVar(&off, "off", false, "end the hold, and forget whom the stage has approved")
	cmd.MarkFlagsMutuallyExclusive("off", "at")
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		m := &api.HostHold{}
		if err := f.fill(m.ProtoReflect(), args, true); err != nil {
			return cli.View{}, err
		}
		if off {
			answer, err := c.DeleteHold(c.Ctx, &api.DeleteHoldRequest{Stage: m.Stage})
			return viewUndone(answer, err, fmt.Sprint("hold of ", m.Stage, " ended"),
				fmt.Errorf("stage %s holds no hosts; weft host holds shows those that do", m.Stage))
		}
		h, err := c.SetHold(c.Ctx, &api.SetHoldRequest{Hold: m})
		return cli.View{Value: h, Text: func(t *cli.Table) { writeAnswer(t, h.ProtoReflect()) }}, err
	})
}
