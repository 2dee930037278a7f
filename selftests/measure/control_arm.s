        .arm
        sub     sp, sp, #16
        mov     r7, #256
        add     r7, r7, #7              @ clock_gettime
        mov     r1, sp
        mov     r0, #1                  @ CLOCK_MONOTONIC
        svc     #0
        mov     r2, #0x8000000
loop:   subs    r2, r2, #1
        bne     loop
        add     r1, sp, #8
        mov     r0, #1
        svc     #0
        mov     r7, #4                  @ write
        mov     r0, #1
        mov     r1, sp
        mov     r2, #16
        svc     #0
        mov     r7, #1                  @ exit
        mov     r0, #0
        svc     #0
