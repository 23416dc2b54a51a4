package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"
)

// Adjacencies counts with how many neighbours a daemon of FRR has settled, by its
// socket: fully, or as two that are neither designated router nor its backup.
func Adjacencies(ctx context.Context, socket, command string) (int, error) {
	text, err := askFRR(ctx, socket, command)
	if err != nil {
		return 0, err
	}
	var said struct {
		Neighbors json.RawMessage `json:"neighbors"`
	}
	if err := json.Unmarshal(text, &said); err != nil {
		return 0, err
	}
	type neighbour struct{ State, IfState string }
	var list []neighbour
	var byID map[string][]neighbour // OSPF has them so, OSPFv3 as a list
	if json.Unmarshal(said.Neighbors, &byID) == nil {
		for _, of := range byID {
			list = append(list, of...)
		}
	} else if err := json.Unmarshal(said.Neighbors, &list); err != nil {
		return 0, err
	}
	full := 0
	for _, nb := range list {
		if strings.HasPrefix(nb.State, "Full") || nb.State == "2-Way/DROther" || strings.EqualFold(nb.State, "Twoway") && nb.IfState == "DROther" {
			full++
		}
	}
	return full, nil
}

// What the daemons are asked.
const (
	OSPFNeighbours  = "show ip ospf neighbor json"
	OSPF6Neighbours = "show ipv6 ospf6 neighbor json"
)

// askFRR has a daemon of FRR run commands at its socket, as vtysh does, and returns
// the answer to the last: a zero byte ends what is said, three and a status what is
// answered.
func askFRR(ctx context.Context, socket string, commands ...string) ([]byte, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(5 * time.Second))
	var answer []byte
	for _, line := range append([]string{"enable"}, commands...) {
		if _, err := c.Write(append([]byte(line), 0)); err != nil {
			return nil, err
		}
		answer = answer[:0]
		for buf := make([]byte, 4096); len(answer) < 4 || !bytes.Equal(answer[len(answer)-4:len(answer)-1], []byte{0, 0, 0}); {
			n, err := c.Read(buf)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", line, err)
			}
			answer = append(answer, buf[:n]...)
		}
		if said := answer[:len(answer)-4]; answer[len(answer)-1] != 0 {
			return nil, fmt.Errorf("%s: %.200s", line, said)
		}
	}
	return answer[:len(answer)-4], nil
}

// Configure has a daemon of FRR, by its socket, take commands of its configuration.
func Configure(ctx context.Context, socket string, commands ...string) error {
	_, err := askFRR(ctx, socket, append([]string{"configure terminal"}, commands...)...)
	return err
}
