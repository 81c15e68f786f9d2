package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "corpus:", err)
		os.Exit(1)
	}
}

func run() error {
	pawl := flag.String("pawl", "", "the program to run")
	keep := flag.String("keep", "", "the folder for what came of each case")
	only := flag.String("only", "", "a regular expression: run only the cases whose names match")
	jobs := flag.Int("jobs", 3, "how many cases run at once")
	flag.Parse()
	if *pawl == "" || *keep == "" {
		return errors.New("-pawl and -keep are required")
	}
	wanted, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	program, err := filepath.Abs(*pawl)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(*keep, 0o755); err != nil {
		return err
	}
	// Always the same folder, because its length shows on screens.
	root := filepath.Join(os.TempDir(), "pawl-corpus")
	if err := os.RemoveAll(root); err != nil {
		return err
	}
	defer os.RemoveAll(root)

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	shared := &engine{program: program, home: filepath.Join(root, "home"), log: filepath.Join(root, "up.log")}
	if err := shared.start(ctx); err != nil {
		return err
	}
	defer shared.kill()

	return each(ctx, *jobs, cases(wanted), func(c course) error {
		w, err := newWorld(root, c, shared)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		text := w.take(ctx, c)
		fmt.Println(c.name)
		return os.WriteFile(filepath.Join(*keep, c.name+".txt"), []byte(text), 0o644)
	})
}

// cases returns the wanted cases of all tables.
func cases(wanted *regexp.Regexp) (chosen []course) {
	chosen = append(chosen, loops...)
	for _, c := range deliveries {
		c.spec = merge(delivery, c.spec)
		chosen = append(chosen, c)
	}
	chosen = append(chosen, stewards...)
	return slices.DeleteFunc(chosen, func(c course) bool { return !wanted.MatchString(c.name) })
}

// each does something with all cases, some at once, and returns the errors.
func each(ctx context.Context, jobs int, all []course, do func(course) error) error {
	var (
		group  sync.WaitGroup
		mu     sync.Mutex
		failed error
		queue  = make(chan course)
	)
	for range jobs {
		group.Go(func() {
			for c := range queue {
				if err := do(c); err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	for _, c := range all {
		if ctx.Err() != nil {
			break
		}
		queue <- c
	}
	close(queue)
	group.Wait()
	return errors.Join(failed, ctx.Err())
}
