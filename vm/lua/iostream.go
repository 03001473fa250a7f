package lua

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"ashlar/vm"
)

func (s *stream) write(c *vm.Call, self *vm.Object) ([]vm.Value, error) {
	if s.closed || s.w == nil {
		return nil, vm.Errorf("closed", "%s is not open for writing", s.name)
	}
	if err := s.sync(); err != nil {
		return outcome(c, err)
	}
	for _, v := range c.Args {
		if _, err := io.WriteString(s.w, text(v)); err != nil {
			return outcome(c, err)
		}
	}
	return []vm.Value{self}, nil
}

func text(v vm.Value) string {
	switch x := v.(type) {
	case string:
		return x
	case float64:
		return strconv.FormatFloat(x, 'g', 14, 64)
	}
	return fmt.Sprint(v)
}

// sync gives up what was read ahead, so that a write lands where the script is.
func (s *stream) sync() error {
	if s.seeker == nil || s.r == nil || s.r.Buffered() == 0 {
		return nil
	}
	_, err := s.seeker.Seek(-int64(s.r.Buffered()), io.SeekCurrent)
	r, _ := s.file.(io.Reader)
	s.r.Reset(r)
	return err
}

func (s *stream) seek(c *vm.Call) ([]vm.Value, error) {
	whence := map[string]int{"": io.SeekCurrent, "cur": io.SeekCurrent, "set": io.SeekStart, "end": io.SeekEnd}
	w, ok := whence[c.Str(0)]
	if !ok {
		return nil, vm.Errorf("validation", "whence must be set, cur or end, got %q", c.Str(0))
	}
	if s.closed || s.seeker == nil {
		return nil, vm.Errorf("closed", "%s cannot seek", s.name)
	}
	if err := s.sync(); err != nil {
		return outcome(c, err)
	}
	at, err := s.seeker.Seek(c.Int(1, 0), w)
	if err != nil {
		return outcome(c, err)
	}
	return []vm.Value{at}, nil
}

// read reads by Lua's formats; a format that finds the end gives nil and is the
// last.
func (s *stream) read(formats []vm.Value) ([]vm.Value, error) {
	if s.closed || s.r == nil {
		return nil, vm.Errorf("closed", "%s is not open for reading", s.name)
	}
	if len(formats) == 0 {
		formats = []vm.Value{"l"}
	}
	var out []vm.Value
	for _, f := range formats {
		v, err := s.readOne(f)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
		if v == nil {
			break
		}
	}
	return out, nil
}

func (s *stream) readOne(format vm.Value) (vm.Value, error) {
	if n, ok := format.(int64); ok {
		return s.readBytes(n)
	}
	name, _ := format.(string)
	switch strings.TrimPrefix(name, "*") {
	case "l":
		return s.readLine(false)
	case "L":
		return s.readLine(true)
	case "a":
		b, err := io.ReadAll(io.LimitReader(s.r, maxLine+1))
		if err == nil && len(b) > maxLine {
			err = vm.Errorf("limit", "%s is longer than %d bytes; read it in parts", s.name, maxLine)
		}
		return string(b), err
	case "n":
		return s.readNumber()
	}
	return nil, vm.Errorf("validation", "invalid format %v; it takes n, l, L, a or a number of bytes", format)
}

func (s *stream) readBytes(n int64) (vm.Value, error) {
	if n < 0 || n > maxLine {
		return nil, vm.Errorf("limit", "cannot read %d bytes at once (the limit is %d)", n, maxLine)
	}
	if n == 0 {
		if _, err := s.r.Peek(1); err != nil {
			return nil, nil
		}
		return "", nil
	}
	b, err := io.ReadAll(io.LimitReader(s.r, n))
	if err != nil || len(b) == 0 {
		return nil, err
	}
	return string(b), nil
}

func (s *stream) readLine(keepEnd bool) (vm.Value, error) {
	var line []byte
	for {
		part, err := s.r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, vm.Errorf("limit", "%s has a line longer than %d bytes", s.name, maxLine)
		}
		switch {
		case err == nil:
			if !keepEnd {
				line = line[:len(line)-1]
			}
			return string(line), nil
		case isFull(err):
			continue
		case err == io.EOF && len(line) > 0:
			return string(line), nil
		case err == io.EOF:
			return nil, nil
		}
		return nil, err
	}
}

func (s *stream) readNumber() (vm.Value, error) {
	const longest = 200
	var b []byte
	for len(b) < longest {
		c, err := s.r.ReadByte()
		if err != nil {
			break
		}
		if len(b) == 0 && (c == ' ' || c >= '\t' && c <= '\r') {
			continue
		}
		if strings.IndexByte("0123456789abcdefABCDEFxXpP.+-", c) < 0 {
			if err := s.r.UnreadByte(); err != nil {
				return nil, err
			}
			break
		}
		b = append(b, c)
	}
	if n, err := strconv.ParseInt(string(b), 0, 64); err == nil {
		return n, nil
	}
	n, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return nil, nil
	}
	return n, nil
}

func isFull(err error) bool { return errors.Is(err, bufio.ErrBufferFull) }
