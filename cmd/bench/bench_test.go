package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dpmf-go/dpmf/internal/bench/report"
)

// binary is the program under test, built once: exit statuses and signals belong to a process.
var binary string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "bench")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		binary = filepath.Join(dir, "bench")
		build := []string{"build", "-o", binary}
		if raceDetector {
			build = append(build, "-race")
		}
		if out, err := exec.Command("go", append(build, ".")...).CombinedOutput(); err != nil {
			os.Stderr.Write(out)
			return 1
		}
		return m.Run()
	}())
}

// raceOptions turns off the second that a program with the race detector waits for at its end. A race found makes the
// exit status 66.
const raceOptions = "GORACE=atexit_sleep_ms=0"

// realData is the path of ML-100K's ratings.
func realData(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("DPMF_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	path, err := filepath.Abs(filepath.Join(dir, "ml-100k", "u.data"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("this test needs the ML-100K ratings: put them under $DPMF_DATA/ml-100k (%v)", err)
	}
	return path
}

// command prepares a run in an empty folder with a cache of its own.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Second)
	t.Cleanup(cancel)
	// The rating scale of a file is taken as private unless it is given.
	c := exec.CommandContext(ctx, binary, append([]string{"--scale=1,5"}, args...)...)
	c.Dir = t.TempDir()
	c.Env = append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(c.Dir, "cache"), raceOptions)
	return c
}

// result runs a prepared command.
func result(t *testing.T, c *exec.Cmd) (status int, stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	c.Stdout, c.Stderr = &out, &log
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), out.String(), log.String()
}

func readReport(t *testing.T, path string) *report.Report {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return &r
}

// leftovers lists the files in a folder apart from those expected and the cache.
func leftovers(t *testing.T, dir string, expected ...string) (list []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if name := e.Name(); name != "cache" && !strings.Contains(" "+strings.Join(expected, " ")+" ", " "+name+" ") {
			list = append(list, name)
		}
	}
	return list
}

func TestWholeRun(t *testing.T) {
	c := command(t, "-dataset="+realData(t), "--kernels=choleskysolve,topk", "--rounds=2", "--rank=8", "--iters=2", "--epsilon=1,inf",
		"--json=out.json", "--html=out.html", "--max-memory=2GB")
	status, stdout, stderr := result(t, c)
	if status != 0 {
		t.Fatalf("exit status %d\n%s", status, stderr)
	}
	for _, want := range []string{"Machine", "FMA peak", "100,000 ratings", "Planned memory", "CholeskySolveF32", "TopKF32", "Trainers, explicit protocol", "popularity", "user add/remove"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("standard output lacks %q:\n%s", want, stdout)
		}
	}
	if strings.Contains(stdout, "synthetic") {
		t.Error("real data are called synthetic")
	}
	if !strings.Contains(stderr, "iteration 2 of 2") || strings.Contains(stderr, "\r") {
		t.Errorf("off a terminal, progress should be lines:\n%s", stderr)
	}
	r := readReport(t, filepath.Join(c.Dir, "out.json"))
	if r.Schema != 1 || r.Interrupted || r.Synthetic || r.Data.Ratings != 100_000 || r.Data.SHA256 != "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490" {
		t.Errorf("report %+v, data %+v", r, r.Data)
	}
	// ALS once per protocol, DPALS once per protocol and ε, but for speed once.
	if len(r.Kernels) == 0 || len(r.Trainers) != 8 || len(r.Baselines) != 3 || r.MemoryPeak <= 0 || !(r.Machine.FMAPeak > 0) || !(r.Machine.ReadGBs > 0) {
		t.Errorf("%d kernels, %d trainers, %d baselines, memory %d, machine %+v", len(r.Kernels), len(r.Trainers), len(r.Baselines), r.MemoryPeak, r.Machine)
	}
	page, err := os.ReadFile(filepath.Join(c.Dir, "out.html"))
	if err != nil || !bytes.Contains(page, []byte("</html>")) {
		t.Errorf("page of %d bytes, %v", len(page), err)
	}
	if extra := leftovers(t, c.Dir, "out.json", "out.html"); len(extra) > 0 {
		t.Errorf("the run left %v", extra)
	}
}

func TestHelp(t *testing.T) {
	for _, flag := range []string{"-h", "--help"} {
		status, stdout, stderr := result(t, command(t, flag))
		if status != 0 || stderr != "" {
			t.Errorf("%s: exit status %d, %q", flag, status, stderr)
		}
		for _, want := range []string{"dataset", "data", "trainers", "kernels", "rank", "epsilon", "delta", "iters", "seed", "threads", "isa", "json", "html", "offline", "real-only", "max-memory", "skip-bad-lines"} {
			if !strings.Contains(stdout, "\n  --"+want+" ") {
				t.Errorf("%s does not explain --%s in a line", flag, want)
			}
		}
	}
}

// TestWrongUse demands exit status 2, one sentence about the cause, and no file left behind.
func TestWrongUse(t *testing.T) {
	files := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(files, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good.csv", "userId,movieId,rating\n"+strings.Repeat("1,1,3\n1,2,4\n2,1,5\n2,3,1\n", 2))
	existing := file("existing.json", "{}")
	for name, c := range map[string]struct {
		args []string
		env  string
		want string
	}{
		"unknown flag":       {args: []string{"--speed=fast"}, want: "speed"},
		"value not a number": {args: []string{"--rank=many"}, want: `"many"`},
		"argument":           {args: []string{"ml20m"}, want: "--dataset=ml20m"},
		"rank 0":             {args: []string{"--rank=0"}, want: "--rank is 0"},
		"rank too large":     {args: []string{"--rank=1000000"}, want: "--rank is 1000000"},
		"iterations 0":       {args: []string{"--iters=0"}, want: "--iters is 0"},
		"threads 0":          {args: []string{"--threads=0"}, want: "--threads is 0"},
		"repeat 0":           {args: []string{"--repeat=0"}, want: "--repeat is 0"},
		"empty scale":        {args: []string{"--scale=5,1"}, want: "--scale: \"5,1\" is empty"},
		"wrong scale":        {args: []string{"--scale=one,5"}, want: "--scale: \"one\" is not a finite number"},
		"scale not public":   {args: []string{"--dataset=" + good, "--scale=", "--kernels=none"}, want: "give --scale=min,max"},
		"one file for two":   {args: []string{"--json=o", "--html=o"}, want: "both name o"},
		"impossible budget":  {args: []string{"--dataset=ml20m", "--epsilon=20,1", "--delta=1e-200"}, want: "dpals speed ε=1 r=64: item counts already take"},
		"... known late":     {args: []string{"--dataset=" + good, "--delta=1e-200", "--protocol=implicit"}, want: "dpals implicit ε=1 r=64: item counts already take"},
		"rounds 0":           {args: []string{"--rounds=0"}, want: "--rounds is 0"},
		"epsilon 0":          {args: []string{"--epsilon=1,0"}, want: "epsilon is 0"},
		"epsilon negative":   {args: []string{"--epsilon=-1"}, want: "epsilon is -1"},
		"epsilon nan":        {args: []string{"--epsilon=nan"}, want: "not a number"},
		"epsilon word":       {args: []string{"--epsilon=little"}, want: `"little"`},
		"delta 1":            {args: []string{"--delta=1"}, want: "delta is 1"},
		"delta 0":            {args: []string{"--delta=0"}, want: "delta is 0"},
		"kernel":             {args: []string{"--kernels=fft"}, want: `unknown kernel "fft"`},
		"trainer":            {args: []string{"--trainers=svd"}, want: `unknown trainer "svd"`},
		"protocol":           {args: []string{"--protocol=hearsay"}, want: `unknown protocol "hearsay"`},
		"instruction set":    {args: []string{"--isa=avx1024"}, want: `--isa: unknown instruction set "avx1024"`},
		"DPMF_ISA":           {env: "DPMF_ISA=avx1024", want: `DPMF_ISA: unknown instruction set "avx1024"`},
		"size":               {args: []string{"--max-memory=lots"}, want: `"lots" is not a size`},
		"columns":            {args: []string{"--columns=user"}, want: "three columns"},
		"missing file":       {args: []string{"--dataset=" + filepath.Join(files, "none.csv")}, want: "none.csv"},
		"wrong column":       {args: []string{"--dataset=" + good, "--columns=userId,film,rating"}, want: "film"},
		"NaN rating":         {args: []string{"--dataset=" + file("nan.csv", "userId,movieId,rating\n1,2,3\n1,3,NaN\n")}, want: "nan.csv:3"},
		"empty file":         {args: []string{"--dataset=" + file("empty.csv", "")}, want: "empty.csv"},
		"truncated zip":      {args: []string{"--dataset=" + file("cut.zip", "PK\x03\x04\x14\x00\x00\x00\x08\x00")}, want: "cut.zip"},
		"too few ratings":    {args: []string{"--dataset=" + good}, want: "too few"},
		"too little memory":  {args: []string{"--dataset=" + good, "--max-memory=1MB"}, want: "--max-memory allows 1.0 MB"},
		"memory for a shape": {args: []string{"--dataset=ml20m", "--max-memory=100MB"}, want: "20,000,263 ratings"},
		"no folder":          {args: []string{"--json=" + filepath.Join(files, "none", "out.json")}, want: "--json: cannot write"},
		"folder":             {args: []string{"--html=" + files}, want: "--html: cannot write " + files + ": it is a folder"},
		"profile":            {args: []string{"--cpuprofile=" + filepath.Join(files, "none", "cpu")}, want: "--cpuprofile: cannot write"},
		"keeps an old file":  {args: []string{"--json=" + existing, "--dataset=" + filepath.Join(files, "none.csv")}, want: "none.csv"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := command(t, append([]string{"--kernels=none", "--offline", "--no-cache"}, c.args...)...)
			if c.env != "" {
				cmd.Env = append(cmd.Env, c.env)
			}
			status, _, stderr := result(t, cmd)
			lines := strings.Split(strings.TrimSpace(stderr), "\n")
			last := lines[len(lines)-1]
			if status != exitUser || !strings.HasPrefix(last, "bench: ") || !strings.Contains(last, c.want) {
				t.Errorf("exit status %d, want %d, and a sentence with %q:\n%s", status, exitUser, c.want, stderr)
			}
			if strings.Contains(stderr, "panic") || strings.Contains(stderr, "goroutine") {
				t.Errorf("a panic reached the user:\n%s", stderr)
			}
			if extra := leftovers(t, cmd.Dir); len(extra) > 0 {
				t.Errorf("the run left %v", extra)
			}
		})
	}
	t.Cleanup(func() {
		if text, err := os.ReadFile(existing); err != nil || string(text) != "{}" {
			t.Errorf("a failed run changed the old file to %q, %v", text, err)
		}
		if extra, _ := filepath.Glob(filepath.Join(files, ".*.tmp")); len(extra) > 0 {
			t.Errorf("temporary files stayed: %v", extra)
		}
	})
}

// TestFullDisk finds out before the long work.
func TestFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("there is no /dev/full here")
	}
	status, stdout, stderr := result(t, command(t, "--json=/dev/full"))
	if status != exitUser || !strings.Contains(stderr, "--json: cannot write /dev/full: no space left") || stdout != "" {
		t.Errorf("--json: exit status %d\n%s%s", status, stdout, stderr)
	}
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	c := command(t, "--dataset="+realData(t), "--kernels=none", "--trainers=none")
	var log bytes.Buffer
	c.Stdout, c.Stderr = full, &log
	if err := c.Run(); err == nil || c.ProcessState.ExitCode() != exitUser || !strings.Contains(log.String(), "cannot write to standard output") {
		t.Errorf("standard output: %v\n%s", err, log.String())
	}
}

// readOnly is a folder in which nothing can be made.
func readOnly(t *testing.T) string {
	t.Helper()
	if os.Getuid() == 0 { // whom permissions do not bind
		if runtime.GOOS != "linux" {
			t.Skip("this test needs a folder that root cannot write to, such as /proc of Linux")
		}
		return "/proc"
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestReadOnlyFolder(t *testing.T) {
	dir := readOnly(t)
	for _, flag := range []string{"json", "html", "cpuprofile"} {
		path := filepath.Join(dir, "bench-out")
		status, stdout, stderr := result(t, command(t, "--"+flag+"="+path))
		if status != exitUser || stdout != "" || !strings.HasPrefix(stderr, "bench: --"+flag+": cannot write ") || !strings.Contains(stderr, path) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("--%s: exit status %d, want %d and one sentence before any work\n%s%s", flag, status, exitUser, stdout, stderr)
		}
	}
}

// TestReadOnlyCache is refused before any work, unless the cache is not wanted.
func TestReadOnlyCache(t *testing.T) {
	args := []string{"--dataset=" + realData(t), "--kernels=none", "--trainers=none"}
	c := command(t, args...)
	cache := "XDG_CACHE_HOME=" + filepath.Join(readOnly(t), "cache")
	c.Env = append(c.Env, cache)
	status, stdout, stderr := result(t, c)
	if status != exitUser || stdout != "" || !strings.HasPrefix(stderr, "bench: the cache folder cannot be written: ") || strings.Count(stderr, "\n") != 1 {
		t.Errorf("exit status %d, want %d and one sentence before any work\n%s%s", status, exitUser, stdout, stderr)
	}
	c = command(t, append(args, "--no-cache")...)
	c.Env = append(c.Env, cache)
	if status, _, stderr := result(t, c); status != 0 {
		t.Errorf("--no-cache: exit status %d\n%s", status, stderr)
	}
}

// TestOutputReplacesWhatALinkPointsTo keeps the link.
func TestOutputReplacesWhatALinkPointsTo(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "target.json"), filepath.Join(dir, "link.json")
	if err := errors.Join(os.WriteFile(target, []byte("old"), 0o600), os.Symlink(target, link)); err != nil {
		t.Fatal(err)
	}
	if status, _, stderr := result(t, command(t, "--dataset="+realData(t), "--kernels=none", "--trainers=none", "--json="+link)); status != 0 {
		t.Fatalf("exit status %d\n%s", status, stderr)
	}
	if r := readReport(t, target); r.Schema != report.Schema {
		t.Errorf("schema %d", r.Schema)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
}

// TestInterrupt stops a run that would take hours, at a different place each.
func TestInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs POSIX signals")
	}
	data := realData(t)
	for _, c := range []struct {
		name   string
		signal syscall.Signal
		after  string // a piece of a line on standard error
		args   []string
		check  func(t *testing.T, r *report.Report)
	}{
		{"at the start", syscall.SIGTERM, "machine:", nil, func(t *testing.T, r *report.Report) {
			if r.Machine.CPU == "" || len(r.Trainers) > 0 {
				t.Errorf("machine %+v, %d trainers", r.Machine, len(r.Trainers))
			}
		}},
		{"in the kernels", syscall.SIGINT, "kernel 4 of", []string{"--rounds=30", "--kernels=choleskysolve,topk"}, func(t *testing.T, r *report.Report) {
			if len(r.Kernels) == 0 || r.Data == nil {
				t.Errorf("%d kernels, data %v: what was measured is lost", len(r.Kernels), r.Data)
			}
		}},
		{"in a repeat", syscall.SIGINT, "repeat 2 of 1000, quality", []string{"--kernels=none", "--iters=1", "--repeat=1000", "--trainers=als", "--protocol=explicit"}, func(t *testing.T, r *report.Report) {
			if len(r.Trainers) != 1 || r.Trainers[0].Repeats < 1 || !(r.Trainers[0].Metrics["rmse"] > 0) {
				t.Errorf("trainers %+v: the quality of what was finished is lost", r.Trainers)
			}
		}},
		{"in a training run", syscall.SIGINT, "iteration 3 of", []string{"--kernels=none", "--iters=10000000", "--protocol=explicit"}, func(t *testing.T, r *report.Report) {
			if len(r.Baselines) == 0 || len(r.Trainers) != 1 || r.Trainers[0].Iterations < 3 || !(r.Trainers[0].IterationSeconds > 0) {
				t.Errorf("baselines %+v, trainers %+v", r.Baselines, r.Trainers)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := command(t, append([]string{"--dataset=" + data, "--json=out.json", "--html=out.html", "--rank=8"}, c.args...)...)
			pipe, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var sent time.Time
			for lines := bufio.NewScanner(pipe); lines.Scan(); {
				if sent.IsZero() && strings.Contains(lines.Text(), c.after) {
					sent = time.Now()
					if err := cmd.Process.Signal(c.signal); err != nil {
						t.Fatal(err)
					}
				}
			}
			err = cmd.Wait()
			if status := cmd.ProcessState.ExitCode(); status != exitInterrupted {
				t.Fatalf("exit status %d (%v), want %d", status, err, exitInterrupted)
			}
			if took := time.Since(sent); took > 3*time.Second {
				t.Errorf("it took %v to stop", took)
			}
			r := readReport(t, filepath.Join(cmd.Dir, "out.json"))
			if !r.Interrupted {
				t.Error("the report does not say that it was interrupted")
			}
			c.check(t, r)
			if !strings.Contains(out.String(), "Machine") {
				t.Errorf("what was measured is not printed:\n%s", out.String())
			}
			if extra := leftovers(t, cmd.Dir, "out.json", "out.html"); len(extra) > 0 {
				t.Errorf("the run left %v", extra)
			}
		})
	}
}

// TestSecondInterruptKills makes the program hang on its way out: standard output is a pipe that is full.
func TestSecondInterruptKills(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs POSIX signals")
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	if err := write.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 4096); err == nil; {
		_, err = write.Write(block)
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the pipe cannot be filled: %v", err)
	}

	cmd := command(t, "--dataset="+realData(t), "--kernels=none", "--trainers=none", "--json=out.json")
	cmd.Stdout = write
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(log); lines.Scan() && !strings.Contains(lines.Text(), "machine:"); {
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	interrupt := func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	interrupt()
	select {
	case err := <-done:
		t.Fatalf("the first interrupt ended it (%v), although its output is blocked", err)
	case <-time.After(2 * grace):
	}
	interrupt()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		t.Fatal("the second interrupt did not kill it")
	}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != syscall.SIGINT {
		t.Errorf("it ended with %v, want death by interrupt", cmd.ProcessState)
	}
	if _, err := os.Stat(filepath.Join(cmd.Dir, "out.json")); err == nil {
		t.Error("a killed run left a result")
	}
}

// TestSameSeedSameFigures needs the noise to come from the seed, and says so.
func TestSameSeedSameFigures(t *testing.T) {
	data := realData(t)
	figures := func(seed string) (list []float64) {
		c := command(t, "--dataset="+data, "--kernels=none", "--trainers=dpals", "--protocol=explicit,implicit", "--epsilon=1", "--rank=4", "--seed="+seed, "--json=out.json")
		status, stdout, stderr := result(t, c)
		if status != 0 || !strings.Contains(stdout, "not for release") {
			t.Fatalf("exit status %d\n%s%s", status, stdout, stderr)
		}
		for _, row := range readReport(t, filepath.Join(c.Dir, "out.json")).Trainers {
			if !row.SeededNoise || !strings.Contains(row.Privacy, "whoever knows the seed can remove the noise") {
				t.Errorf("the report does not say that noise is seeded: %q", row.Privacy)
			}
			list = append(list, float64(row.Metrics["rmse"]), float64(row.Metrics["recall@20"]))
		}
		return list
	}
	first, again, other := figures("7"), figures("7"), figures("8")
	if len(first) != 4 || !slices.Equal(first, again) || slices.Equal(first, other) {
		t.Errorf("seed 7: %v, again %v, seed 8: %v", first, again, other)
	}
}
