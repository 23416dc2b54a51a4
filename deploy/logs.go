package deploy

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/weft-sdn/weft/api"
	"github.com/weft-sdn/weft/deploy/members"
)

// logMethod asks a process for the log of a process, itself or one of its
// machine.
const logMethod = "deploy.Log"

// Bounds of an answer.
const (
	logLines   = 200  // if a request does not say
	logMost    = 1000 // lines
	logText    = 1 << 20
	logTimeout = 3 * time.Second
)

// aloneName is what the only process of a controller is called.
const aloneName = "controller"

// ReadWorkerLog returns the last lines of the log of a process. That of one that
// does not answer is read by another of its machine.
func (n *Node) ReadWorkerLog(ctx context.Context, r *api.ReadWorkerLogRequest) (*api.ReadWorkerLogResponse, error) {
	if r.Lines > logMost {
		return nil, api.Errorf(codes.InvalidArgument, "lines %d: want 1 to %d", r.Lines, logMost)
	}
	n.members.mu.Lock()
	current, entries, peers := n.members.current, maps.Clone(n.members.entries), maps.Clone(n.members.peers)
	n.members.mu.Unlock()
	name := r.Worker
	if n.config.Alone && name == aloneName {
		name = n.config.Process
	}
	if entries[name] == nil && name != n.config.Process {
		known := false
		if current != nil {
			for _, i := range current.InForce().Instances() {
				process := current.ProcessOf(i.Name)
				if i.Name == name || process == name {
					known, name = true, process
					break
				}
			}
		}
		if !known {
			return nil, api.Errorf(codes.NotFound, "there is no process %q; weft get workers lists them", r.Worker)
		}
	}
	ask := &api.ReadWorkerLogRequest{Worker: name, Lines: r.Lines}
	if ask.Lines == 0 {
		ask.Lines = logLines
	}
	if name == n.config.Process {
		if resp := n.logHere(ask); resp != nil {
			return resp, nil
		}
		return nil, api.Errorf(codes.Unavailable, "process %s keeps no log", name)
	}
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	if p := peers[name]; p != nil {
		if resp := logOf(ctx, p, ask); resp != nil {
			return resp, nil
		}
	}
	if resp := n.logHere(ask); resp != nil {
		return resp, nil
	}
	machines := map[string]bool{n.members.links.Machine: true}
	for _, other := range slices.Sorted(maps.Keys(peers)) {
		e := peers[other].Entry.Load()
		if other == name || machines[e.Machine] {
			continue
		}
		machines[e.Machine] = true
		if resp := logOf(ctx, peers[other], ask); resp != nil {
			return resp, nil
		}
	}
	return nil, api.Errorf(codes.Unavailable, "process %s does not answer, and none that does has its log; see workers/%s.log in the data directory on its machine", name, name)
}

// logOf asks a process for a log; nil if it has none, or does not answer.
func logOf(ctx context.Context, p *members.Peer, r *api.ReadWorkerLogRequest) *api.ReadWorkerLogResponse {
	ctx, cancel := context.WithTimeout(ctx, workTimeout)
	defer cancel()
	request, err := proto.Marshal(r)
	if err != nil {
		return nil
	}
	answer, err := p.Request(ctx, logMethod, request)
	if err != nil || len(answer) == 0 || answer[0] != members.AnswerOK {
		return nil
	}
	resp := &api.ReadWorkerLogResponse{}
	if proto.Unmarshal(answer[1:], resp) != nil {
		return nil
	}
	return resp
}

// encodeLog answers another process's request for a log.
func (n *Node) encodeLog(request []byte) ([]byte, error) {
	r := &api.ReadWorkerLogRequest{}
	if err := proto.Unmarshal(request, r); err != nil || r.Lines > logMost {
		return []byte{members.AnswerNotHere}, nil
	}
	resp := n.logHere(r)
	if resp == nil {
		return []byte{members.AnswerNotHere}, nil
	}
	return proto.MarshalOptions{}.MarshalAppend([]byte{members.AnswerOK}, resp)
}

// logHere reads a log that is kept here; nil if there is none.
func (n *Node) logHere(r *api.ReadWorkerLogRequest) *api.ReadWorkerLogResponse {
	if n.config.Logs == nil {
		return nil
	}
	lines, err := n.config.Logs(r.Worker, int(r.Lines))
	if err != nil {
		n.log.Debug("log cannot be read", "process", r.Worker, "error", err)
		return nil
	}
	size, from := 0, len(lines)
	for from > 0 && size+len(lines[from-1]) <= logText {
		from--
		size += len(lines[from])
	}
	resp := &api.ReadWorkerLogResponse{}
	for _, line := range lines[from:] {
		resp.Lines = append(resp.Lines, logLine(line))
	}
	return resp
}

// logLine separates the time from a line.
func logLine(line string) *api.LogLine {
	line = strings.ToValidUTF8(line, "\uFFFD")
	if rest, ok := strings.CutPrefix(line, "time="); ok {
		at, text, _ := strings.Cut(rest, " ")
		if _, err := time.Parse(time.RFC3339, at); err == nil {
			return &api.LogLine{Time: at, Text: text}
		}
	}
	return &api.LogLine{Text: line}
}
