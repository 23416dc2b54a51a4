package supervisor

import (
	"bytes"
	"io"
	"os"
	"strings"
)

// logFile is the output of a process. The process writes it itself, so the
// output does not depend on the supervisor.
type logFile struct {
	path  string
	limit int64 // bytes
}

func (s *Supervisor) logFile(name string) logFile {
	return logFile{LogPath(s.config.Directory, name), s.config.LogSize}
}

// open opens the file to be appended to.
func (l logFile) open() (*os.File, error) {
	if err := l.rotate(); err != nil {
		return nil, err
	}
	return os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// lastLine returns the end of the last line printed, at most 500 bytes; nothing
// if it cannot be read.
func (l logFile) lastLine() string {
	f, err := os.Open(l.path)
	if err != nil {
		return ""
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	tail := make([]byte, min(end, 500))
	if _, err := f.ReadAt(tail, end-int64(len(tail))); err != nil {
		return ""
	}
	tail = bytes.TrimSpace(tail)
	return strings.ToValidUTF8(string(tail[bytes.LastIndexByte(tail, '\n')+1:]), "")
}

// rotate copies a full file to NAME.log.1 and truncates it. The process keeps
// it open and continues at the new end. A line written between the last read
// and the truncation is lost.
func (l logFile) rotate() error {
	info, err := os.Stat(l.path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil || info.Size() < l.limit {
		return err
	}
	from, err := os.OpenFile(l.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	// Keep only the end of a file that grew past the limit between two looks.
	if _, err := from.Seek(max(0, info.Size()-2*l.limit), io.SeekStart); err != nil {
		return err
	}
	to, err := os.OpenFile(l.path+".1.new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err == nil {
		err = from.Truncate(0)
	}
	if e := to.Close(); err == nil {
		err = e
	}
	if err == nil {
		return os.Rename(l.path+".1.new", l.path+".1")
	}
	os.Remove(l.path + ".1.new")
	return err
}
