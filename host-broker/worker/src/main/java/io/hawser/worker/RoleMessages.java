package io.hawser.worker;

import io.hawser.worker.control.BrokerMessage;
import io.hawser.worker.session.Residence;
import java.io.IOException;

/** The messages by which a worker's session leaves its place, or by which the worker serves sessions that do. */
abstract class RoleMessages implements BrokerMessage.Handler {
    private final Swapping swapping;
    private final Moves moves;

    RoleMessages(Swapping swapping, Moves moves) {
        this.swapping = swapping;
        this.moves = moves;
    }

    @Override
    public final void handle(BrokerMessage.Keep keep, int descriptor) throws IOException {
        swapping.become(keep);
    }

    @Override
    public final void handle(BrokerMessage.KeepFor client, int descriptor) throws IOException {
        swapping.serve(client, descriptor);
    }

    @Override
    public final void handle(BrokerMessage.Keeper keeper, int descriptor) throws IOException {
        swapping.use(keeper, descriptor);
    }

    @Override
    public final void handle(BrokerMessage.SwapOut out, int descriptor) throws IOException {
        swapping.order(residence -> residence.leave(out.bytes()));
    }

    @Override
    public final void handle(BrokerMessage.SwapIn in, int descriptor) throws IOException {
        swapping.order(residence -> residence.enter(in.bytes()));
    }

    @Override
    public final void handle(BrokerMessage.SwapFreeze freeze, int descriptor) throws IOException {
        swapping.order(freeze.isFrozen() ? Residence::freeze : Residence::thaw);
    }

    @Override
    public final void handle(BrokerMessage.Mover mover, int descriptor) throws IOException {
        moves.become();
    }

    @Override
    public final void handle(BrokerMessage.MoveSide side, int descriptor) throws IOException {
        moves.serve(side, descriptor);
    }

    @Override
    public final void handle(BrokerMessage.MoveOut out, int descriptor) throws IOException {
        moves.leave(out, descriptor);
    }

    @Override
    public final void handle(BrokerMessage.MoveStream stream, int descriptor) throws IOException {
        moves.receive(descriptor);
    }

    @Override
    public final void handle(BrokerMessage.MoveIn in, int descriptor) throws IOException {
        moves.take(descriptor);
    }

    @Override
    public final void handle(BrokerMessage.MoveLink link, int descriptor) throws IOException {
        moves.link(descriptor);
    }

    @Override
    public final void handle(BrokerMessage.MoveEnd end, int descriptor) throws IOException {
        moves.end(end);
    }
}
