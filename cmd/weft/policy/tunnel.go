package policy

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/cmd/weft/cli"
	"github.com/weft-sdn/weft/cmd/weft/get"
)

// isUsed reports whether a tunnel is a service's.
func isUsed(m proto.Message) bool { return m.(*api.Tunnel).User != "" }

// addRevertFlags adds the flags that say when a tunnel moves to a better path.
func addRevertFlags(cmd *cobra.Command) {
	cmd.Flags().Duration("revert-after", time.Minute, "how long a better path has to be there before the tunnel moves to it")
	cmd.Flags().Bool("no-revert", false, "move only when it must")
}

func checkTunnel(cmd *cobra.Command, _ []string, request proto.Message) error {
	return setRevert(cmd, request.(*api.SetTunnelRequest).Tunnel)
}

// setRevert sets in a tunnel what its durations say, checked.
func setRevert(cmd *cobra.Command, m *api.Tunnel) error {
	f := cmd.Flags()
	delay, err := f.GetDuration("max-delay")
	if err == nil && (delay < 0 || delay%time.Microsecond != 0) {
		return cli.Usagef(cmd, "--max-delay %v: want whole microseconds, such as 5ms", delay)
	}
	revert, err2 := f.GetDuration("revert-after")
	stay, err3 := f.GetBool("no-revert")
	switch given := f.Changed("revert-after"); {
	case stay && given:
		return cli.Usagef(cmd, "--revert-after and --no-revert: give one of them")
	case stay:
		m.RevertAfterS = -1
	case given && (revert < time.Second || revert > 24*time.Hour || revert%time.Second != 0):
		return cli.Usagef(cmd, "--revert-after %v: want whole seconds, 1s to 24h", revert)
	case given:
		m.RevertAfterS = int32(revert / time.Second)
	}
	return cmp.Or(err, err2, err3)
}

// readElements reads switches and links (SWITCH:PORT) that a tunnel is not to use.
func readElements(flag string, to protoreflect.Message, texts []string) error {
	m := to.Interface().(*api.Tunnel)
	for _, text := range texts {
		sw, link, err := get.ParseElement(text)
		switch {
		case err != nil:
			return fmt.Errorf("--%s %w", flag, err)
		case link != nil:
			m.ExcludeLinks = append(m.ExcludeLinks, link)
		default:
			m.ExcludeNodes = append(m.ExcludeNodes, sw)
		}
	}
	return nil
}

func tunnelPreviewCommand(r *cli.Remote) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "preview",
		Short: "Show which path a tunnel would get, and change nothing",
		Long: `Show what weft tunnel add would do with the same flags: the path and the labels that
the tunnel would get, and which tunnels would lose bandwidth to it. Nothing is
changed.`,
		Example: "  weft tunnel preview pe1-pe2 --from 1 --to 4 --bandwidth 100M",
	}
	f := newForm(cmd, (&api.Tunnel{}).ProtoReflect().Descriptor(), "NAME")
	addRevertFlags(cmd)
	return cli.Query(r, cmd, func(c *cli.Controller, args []string) (cli.View, error) {
		m := &api.Tunnel{}
		if err := f.fill(m.ProtoReflect(), args, true); err != nil {
			return cli.View{}, err
		}
		if err := setRevert(cmd, m); err != nil {
			return cli.View{}, err
		}
		answer, err := c.SetTunnels(c.Ctx, &api.SetTunnelsRequest{Tunnels: []*api.Tunnel{m}, DryRun: true})
		if err != nil {
			return cli.View{}, err
		}
		if len(answer.GetOutcomes()) != 1 {
			return cli.View{}, cli.Usagef(cmd, "the controller has answered with %d outcomes", len(answer.GetOutcomes()))
		}
		one := answer.Outcomes[0]
		if one.Code != 0 {
			return cli.View{}, api.Errorf(codes.Code(one.Code), "%s", one.Error)
		}
		return cli.View{Value: one, Text: func(t *cli.Table) {
			writeAnswer(t, one.Tunnel.ProtoReflect())
			if len(one.Preempts) > 0 {
				t.Row("takes bandwidth from", strings.Join(one.Preempts, " "))
			}
		}}, nil
	})
}
