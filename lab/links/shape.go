package links

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/weft-sdn/weft/lab/layout"
	"github.com/weft-sdn/weft/lab/machine"
	"github.com/weft-sdn/weft/lab/topology"
)

// setRate limits what e sends to rate, 0 for no limit, by a token bucket, in
// this thread's namespace.
func setRate(h *netlink.Handle, e *layout.End, rate topology.Rate) error {
	l, err := h.LinkByName(e.Iface)
	if err != nil {
		return fmt.Errorf("find %s of %s: %w", e.Iface, e, err)
	}
	attrs := netlink.QdiscAttrs{LinkIndex: l.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
	if rate == 0 {
		err := h.QdiscDel(&netlink.Tbf{QdiscAttrs: attrs})
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("remove the rate of %s: %w", e, err)
		}
		return nil
	}
	bytes := uint64(rate) / 8
	burst := uint32(min(max(bytes/250, 15_000), 4<<20)) // 4 ms
	q := &netlink.Tbf{
		QdiscAttrs: attrs,
		Rate:       bytes,
		Buffer:     netlink.Xmittime(bytes, burst),
		Limit:      burst + uint32(min(max(bytes/20, 150_000), 64<<20)), // 50 ms of queue, at least 100 packets
	}
	if err := h.QdiscReplace(q); err != nil {
		return fmt.Errorf("set the rate of %s to %v: %w", e, rate, err)
	}
	return nil
}

// LossRules is the nft script that makes a wire lose packets, or all of them
// if it is silent, on those of its ends that are in namespace ns; run again it
// replaces what it did before. Frames are taken off the egress hook by
// forwarding them to lo, which ignores them: the verdict drop would be
// reported to the sender, and Open vSwitch gives up the rest of a batch then.
func LossRules(w *layout.Wire, ns string) string {
	var b strings.Builder
	table := fmt.Sprintf("weft_%d", w.ID)
	fmt.Fprintf(&b, "add table netdev %s\ndelete table netdev %s\n", table, table)
	match := ""
	switch {
	case w.State == layout.LinkIsSilent || w.Shape.Loss >= 100:
	case w.Shape.Loss > 0:
		match = fmt.Sprintf("numgen random mod 1000000 < %d ", int(float64(w.Shape.Loss)*10_000))
	default:
		return b.String()
	}
	fmt.Fprintf(&b, "table netdev %s {\n", table)
	for i, e := range w.Ends() {
		if e.Netns == ns {
			fmt.Fprintf(&b, "chain c%d {\ntype filter hook egress device \"%s\" priority 0; policy accept;\n%sfwd to \"lo\"\n}\n", i, e.Iface, match)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// RunNft runs an nft script in this thread's namespace.
func RunNft(script string) error {
	cmd := exec.Command("nft", "-f", "-")
	cmd.Stdin = strings.NewReader(script)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// ApplyRates sets the rate at both ends of a wire.
func ApplyRates(w *layout.Wire) error {
	for _, e := range w.Ends() {
		if err := machine.WithLinks(e.Netns, func(h *netlink.Handle) error { return setRate(h, e, w.Shape.Rate) }); err != nil {
			return err
		}
	}
	return nil
}

// ApplyLoss installs or removes the loss of a wire at both its ends.
func ApplyLoss(w *layout.Wire) error {
	for i, e := range w.Ends() {
		if i == 1 && e.Netns == w.A.Netns {
			break
		}
		if err := machine.InNetns(e.Netns, func() error { return RunNft(LossRules(w, e.Netns)) }); err != nil {
			return fmt.Errorf("set the loss of %s to %s: %w", &w.A, &w.B, err)
		}
	}
	return nil
}
