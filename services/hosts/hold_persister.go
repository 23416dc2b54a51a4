package hosts

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
)

// holdShelf stores holds: each under hold/STAGE, and its approvals in pages
// under approved/STAGE/NUMBER, as lines "VLAN MAC". Changes that let packets
// pass take effect once they are stored; those that hold packets, at once.
type holdPersister struct{ journal }

func holdKey(stage string) string { return "hold/" + stage }

// approvedPages is the number of pages for a stage's approvals.
const approvedPages = 256

func approvedPage(who id) uint64 { return who.hash() >> 56 }

func approvedKey(stage string, page uint64) string {
	return fmt.Sprintf("approved/%s/%03d", stage, page)
}

// load reads the stored holds, and then their approvals. It reports and leaves
// out what cannot be read.
func (s *holdPersister) load(ctx context.Context, h *holds, bad func(key string, err error)) error {
	approved := map[string][]byte{}
	err := s.read(ctx, func(key string, value []byte) error {
		if !strings.HasPrefix(key, holdKey("")) {
			approved[key] = value
			return nil
		}
		m := &api.HostHold{}
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(value, m); err != nil {
			return err
		}
		one, err := readHold(m)
		if err != nil {
			return err
		}
		if at, err := time.Parse(time.RFC3339Nano, m.Since); err == nil {
			one.since = at.UnixNano()
		}
		return h.set(one)
	}, bad)
	if err != nil {
		return fmt.Errorf("hosts: read holds: %w", err)
	}
	for key, value := range approved {
		stage, _, _ := strings.Cut(strings.TrimPrefix(key, "approved/"), "/")
		for line := range strings.Lines(string(value)) {
			who, err := parseApproval(line)
			if err != nil {
				bad(key, err)
				continue
			}
			h.approve(stage, who, true)
		}
	}
	return nil
}

func parseApproval(line string) (id, error) {
	vlan, mac, _ := strings.Cut(strings.TrimSpace(line), " ")
	n, err := strconv.ParseUint(vlan, 10, 12)
	if err != nil {
		return 0, err
	}
	return readHost(mac, uint32(n))
}

// set answers SetHold.
func (s *holdPersister) set(ctx context.Context, h *holds, now int64, m *api.HostHold) (*api.HostHold, error) {
	one, err := readHold(m)
	if err != nil {
		return nil, err
	}
	one.since = now
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := h.set(one); err != nil {
		return nil, err
	}
	shown := h.list(one.stage).Holds[0]
	kept := proto.CloneOf(shown)
	kept.Approved, kept.Held = 0, 0
	return shown, inForce(s.put(ctx, holdKey(one.stage), kept))
}

// drop answers DeleteHold. It deletes the approvals first: a hold left without
// them holds more, not less.
func (s *holdPersister) drop(ctx context.Context, h *holds, stage string) (*api.DeleteHoldResponse, error) {
	if err := checkStage(stage); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, _, err := h.isApproved(stage, 0); err != nil {
		return &api.DeleteHoldResponse{}, nil
	}
	for page := range uint64(approvedPages) {
		if _, kept := s.revisions[approvedKey(stage, page)]; kept {
			if err := s.put(ctx, approvedKey(stage, page), nil); err != nil {
				return nil, notStored(err)
			}
		}
	}
	if err := s.put(ctx, holdKey(stage), nil); err != nil {
		return nil, notStored(err)
	}
	h.drop(stage)
	return &api.DeleteHoldResponse{Deleted: true}, nil
}

// approve answers ApproveHost.
func (s *holdPersister) approve(ctx context.Context, h *holds, m *api.ApproveHostRequest) (*api.ApproveHostResponse, error) {
	who, err := readHost(m.GetMac(), m.GetVlan())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch approved, all, err := h.isApproved(m.GetStage(), who); {
	case err != nil:
		return nil, err
	case approved:
		return &api.ApproveHostResponse{}, nil
	case all >= maxApprovals:
		return nil, api.Errorf(codes.ResourceExhausted, "%d hosts are approved already; revoke some", all)
	}
	if err := s.write(ctx, h, m.Stage, who, true); err != nil {
		return nil, notStored(err)
	}
	h.approve(m.Stage, who, true)
	return &api.ApproveHostResponse{}, nil
}

// revoke answers RevokeHost.
func (s *holdPersister) revoke(ctx context.Context, h *holds, m *api.RevokeHostRequest) (*api.RevokeHostResponse, error) {
	who, err := readHost(m.GetMac(), m.GetVlan())
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	approved, _, err := h.isApproved(m.GetStage(), who)
	if err != nil {
		return nil, err
	}
	h.approve(m.Stage, who, false)
	return &api.RevokeHostResponse{Revoked: approved}, inForce(s.write(ctx, h, m.Stage, who, false))
}

// write writes the page for the approval of a host.
func (s *holdPersister) write(ctx context.Context, h *holds, stage string, who id, yes bool) error {
	page := approvedPage(who)
	var text []byte
	line := func(one id) { text = fmt.Appendf(text, "%d %v\n", one.vlan(), one.mac()) }
	h.mu.Lock()
	one, _ := h.find(stage)
	for other := range one.approved {
		if approvedPage(other) == page && other != who {
			line(other)
		}
	}
	h.mu.Unlock()
	if yes {
		line(who)
	}
	return s.putText(ctx, approvedKey(stage, page), text)
}
